"""Progress bars."""

from tqdm import tqdm, trange

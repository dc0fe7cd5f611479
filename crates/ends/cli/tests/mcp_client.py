"""Asks `blockyard mcp` by the Python package mcp, which checks each answer against the tool's schema."""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

FILE = {"file": "oom/one_too_large_100.pickle.gz"}
SETTINGS = {"settings": ["expandable_segments:True", "no_such_setting:1"]}
CALLS = {
    "open": FILE | {"certificate": True},
    "holders": FILE,
    "what_if": FILE | SETTINGS,
    "search": FILE,
    "verdict": FILE,
}


async def main(blockyard: str, folder: str) -> None:
    server = StdioServerParameters(command=blockyard, args=["mcp", "--folder", folder])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:

        async def call(tool: str, arguments: dict) -> dict:
            # By the names of the protocol, which all versions of the package have.
            return (await session.call_tool(tool, arguments)).model_dump(by_alias=True)

        await session.initialize()
        print(*(tool.name for tool in (await session.list_tools()).tools))
        for tool, arguments in CALLS.items():
            found = await call(tool, arguments)
            assert not found["isError"], found
        print(found["structuredContent"]["answers"][0]["kind"])
        refused = await call("open", {"file": "../README.md"})
        assert refused["isError"] and "is not below" in refused["content"][0]["text"], refused


asyncio.run(main(*sys.argv[1:]))

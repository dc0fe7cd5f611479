# What xtask/gpu/run-cuda.sh and xtask/gpu/run-torch.sh share: stages that are timed and told, and results in one file.
# Sourced with $out, the folder for the results, and $wanted, the stages to run (all, where it is empty).
failed=0
summary=()
mkdir -p "$out"

is_wanted() { # name
    [ "${#wanted[@]}" -eq 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]
}

note() { # name, status, seconds
    [ "$2" -eq 0 ] || failed=1
    summary+=("$1: status $2, $3 s")
}

stage() { # name, seconds, command...
    local name=$1 limit=$2 begun=$SECONDS
    shift 2
    is_wanted "$name" || return 0
    timeout --kill-after=10 "$limit" "$@" >"$out/$name.txt" 2>"$out/$name.err"
    note "$name" $? $((SECONDS - begun))
}

# For functions, which cannot be cut off as a whole: what they call has limits of its own.
parts() { # name, function
    local begun=$SECONDS
    is_wanted "$1" || return 0
    "$2" >"$out/$1.txt" 2>"$out/$1.err"
    note "$1" $? $((SECONDS - begun))
}

tell() { # name, command... that reads what the stage printed
    local name=$1
    shift
    [ ! -s "$out/$name.txt" ] || "$@" <"$out/$name.txt"
}

# Everything into one archive, which is easier to carry back than many files.
finish() { # name of the archive
    local file files=()
    for file in "$out"/*.err; do
        [ -s "$file" ] && { echo "-- $(basename "$file" .err):"; tail -n 6 "$file" | cut -c 1-400; }
    done
    printf '%s\n' "${summary[@]}" | tee "$out/summary.txt"
    for file in "$out"/*; do
        [ "$file" = "$out/$1.tar.gz" ] || files+=("$(basename "$file")")
    done
    tar -C "$out" --remove-files -czf "$out/$1.tar.gz" -- "${files[@]}"
    exit $failed
}

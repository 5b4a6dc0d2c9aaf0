# bash completion for gpumeter-benchmark(1)                                -*- shell-script -*-

_gpumeter_benchmark() {
  # readline breaks words at "=", so a value is two words after its flag, or one word if the "=" is still missing.
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  [ "$word" = "=" ] && word=""
  if [ "$before" = "=" ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  case $before in
    --backend) mapfile -t COMPREPLY < <(compgen -W "all opencl blas" -- "$word") ;;
    --url) mapfile -t COMPREPLY < <(compgen -A hostname -- "$word") ;;
    --ca-file | --login-file | --jobs-socket | --lock) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --history | --library-path) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    --gpu | --report-as | --time) COMPREPLY=() ;;
    *) mapfile -t COMPREPLY < <(compgen -W "--gpu --cpu --report-as --backend --time --url --ca-file --login-file --jobs-socket --no-send --history --lock --library-path --json --help --version" -- "$word") ;;
  esac
}

complete -F _gpumeter_benchmark gpumeter-benchmark

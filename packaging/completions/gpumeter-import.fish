# fish completion for gpumeter-import(1)
complete -c gpumeter-import -n '__fish_is_first_token' -f -a 'clpeak nvbandwidth dcgm-diag rocm-bandwidth-test transferbench deepbench ai-benchmark mlperf nccl-tests'
complete -c gpumeter-import -l gpu -x -d 'GPUs of the file by index'
complete -c gpumeter-import -l uuid -x -d 'GPUs of the file by uuid'
complete -c gpumeter-import -l host -x -a '(__fish_print_hostnames)' -d 'Machine whose ranks count'
complete -c gpumeter-import -l jobs-socket -r -F -d 'Datagram socket of jobs'
complete -c gpumeter-import -l dry-run -d 'Print the lines'
complete -c gpumeter-import -s h -l help -d 'Print the flags'
complete -c gpumeter-import -l version -d 'Print the version'

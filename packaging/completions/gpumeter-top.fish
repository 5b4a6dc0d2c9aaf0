# fish completion for gpumeter-top(1)
complete -c gpumeter-top -f
complete -c gpumeter-top -l url -x -a '(__fish_print_hostnames)' -d 'Address of the daemon'
complete -c gpumeter-top -l ca-file -r -F -d 'Authorities for https'
complete -c gpumeter-top -l login-file -r -F -d 'File with USER:PASSWORD'
complete -c gpumeter-top -l interval -x -d 'Time between two refreshes'
complete -c gpumeter-top -l sort -x -a 'state gpu utilization power memory temperature' -d 'Order of the GPUs'
complete -c gpumeter-top -l once -d 'Print one table and exit'
complete -c gpumeter-top -l json -d 'Print a JSON object a line'
complete -c gpumeter-top -s h -l help -d 'Print the flags'
complete -c gpumeter-top -l version -d 'Print the version'

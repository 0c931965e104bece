#!/bin/sh
# Makes the files that all hosts of an installation share:
#   deploy/make-secrets.sh DIRECTORY HOST...      HOST: each name or address by which clients reach a ZooKeeper
# ensemble.pem          key and certificate of the servers: for servers alone
# ensemble.crt          the certificate: for servers and clients
# zookeeper-password    the password of the login `orchestrator`: for servers and clients
set -eu
[ $# -ge 2 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
directory=$1
shift
if [ -e "$directory/ensemble.pem" ]; then
    echo "error: $directory/ensemble.pem exists; other hosts may use it" >&2
    exit 2
fi
names=
for host; do
    case $host in
    *[!0-9.]*) kind=DNS ;;
    *) kind=IP ;;
    esac
    case $host in *:*) kind=IP ;; esac
    names="$names,$kind:$host"
done
umask 077
if [ ! -e "$directory" ]; then
    mkdir -p "$directory"
    echo '*' >"$directory/.gitignore" # the folder may be in a checkout: `git add .` must not take a key
fi
draft=$directory/.ensemble.pem
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=spark-job-orchestrator \
    -addext "subjectAltName=${names#,}" -addext keyUsage=critical,digitalSignature,keyCertSign \
    -keyout "$draft" -out "$directory/ensemble.crt" 2>/dev/null ||
    { echo "error: openssl made no certificate for ${names#,}" >&2; exit 1; }
cat "$directory/ensemble.crt" >>"$draft"
openssl rand -base64 32 >"$directory/zookeeper-password"
mv "$draft" "$directory/ensemble.pem"
cat >&2 <<END
$directory has ensemble.pem (the key), ensemble.crt and zookeeper-password. Copy all three to each host with a server,
and only ensemble.crt and zookeeper-password to the other hosts: ensemble.pem stays on hosts with servers.
END

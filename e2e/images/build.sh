#!/usr/bin/env bash
# Builds the images that docker-compose.yml names, without an image registry:
#   debian:bookworm-slim                   with debootstrap
#   apache/kafka:VERSION                   Kafka's jars, OpenJDK from Debian
#   semitechnologies/weaviate:VERSION      from its Go module
#   waymark:local                          from this tree
# and, where there is none, the plugin 'docker compose' from its Go module. What exists is kept, but for waymark.
# usage: build.sh [kafka] [weaviate] [waymark] [compose]    (default: all)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${WAYMARK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/waymark}
images=$cache/images
kafka_version=4.4.0
weaviate_version=1.35.2
compose_version=2.40.3
mkdir -p "$images" "$cache/bin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$here/dockerd.sh" start

# base makes the image that the others begin with.
base() {
  ! docker image inspect debian:bookworm-slim >/dev/null 2>&1 || return 0
  local tree=$work/bookworm
  nice debootstrap --variant=minbase bookworm "$tree" > "$images/debootstrap.log"
  tar -C "$tree" -c --one-file-system \
    --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' \
    --exclude='./var/cache/apt/archives/*.deb' --exclude='./var/lib/apt/lists/*' \
    --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' . |
    docker import --change 'CMD ["bash"]' - debian:bookworm-slim
  rm -rf "$tree"
}

# build IMAGE FOLDER FILE...: the image is made of FOLDER, with FILE... in its subfolder files; and kept in the cache, under a
# name that says what it was made of. One that is there and was not made here, because it was pulled, is left alone.
build() {
  local image=$1 folder=$2 made kept context=$work/context
  shift 2
  made=$(cd "$here/$folder" && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c -12)
  kept=$images/$(tr /: -- <<< "$image")-$made.tar
  local label
  if label=$(docker image inspect --format '{{index .Config.Labels "made-of"}}' "$image" 2>/dev/null); then
    [ -n "$label" ] && [ "$label" != "$made" ] || return 0
  fi
  if [ ! -f "$kept" ]; then
    base
    mkdir -p "$context/files"
    cp -a "$here/$folder/." "$context/"
    "fill_$folder" "$context/files"
    DOCKER_BUILDKIT=0 docker build -q --label "made-of=$made" -t "$image" "$context"
    rm -rf "$context"
    docker save -o "$kept.$$" "$image"
    mv "$kept.$$" "$kept"
  fi
  docker load -q -i "$kept"
}

kafka() { build "apache/kafka:$kafka_version" kafka; }

fill_kafka() {
  local jars
  jars=$(cd "$root" && go run ./e2e/kafkalocal/cmd/kafkalocal jars -version "$kafka_version")
  cp -a "$jars"/*.jar "$1"
}

weaviate() { build "semitechnologies/weaviate:$weaviate_version" weaviate; }

fill_weaviate() {
  local server=$cache/bin/weaviate-server-v$weaviate_version
  if [ ! -x "$server" ]; then # about 3 minutes on 2 cores, the first time
    (cd / && CGO_ENABLED=0 GOBIN=$work GOFLAGS=-mod=mod nice go install -trimpath -ldflags='-s -w' \
      "github.com/weaviate/weaviate/cmd/weaviate-server@v$weaviate_version")
    mv "$work/weaviate-server" "$server"
  fi
  cp -a "$server" "$1/weaviate-server"
}

# waymark compiles on this machine: no image with a compiler is needed.
waymark() {
  local dist=$root/dist
  rm -rf "$dist"
  mkdir -p "$dist/data" "$dist/blobs" "$dist/etc/ssl/certs"
  cp /etc/ssl/certs/ca-certificates.crt "$dist/etc/ssl/certs/"
  (cd "$root" && CGO_ENABLED=0 nice go build -trimpath -ldflags='-s -w' -o "$dist/" ./cmd/waymark ./deploy/healthcheck)
  buildkit build --build-arg FILES=prebuilt -t waymark:local "$root"
}

# buildkit is a client that builds with BuildKit: this one if it has the plugin, else Debian's own.
buildkit() {
  if docker buildx version >/dev/null 2>&1; then
    docker "$@"
  else
    DOCKER_BUILDKIT=1 /usr/bin/docker "$@"
  fi
}

# compose is the plugin of the client, where it has none: 2.5 minutes on 2 cores, the first time.
compose() {
  docker compose version >/dev/null 2>&1 && return
  local plugin=$cache/bin/docker-compose-v$compose_version folder=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins
  if [ ! -x "$plugin" ]; then
    mkdir "$work/compose"
    # Not 'go install': it refuses a go.mod that has exclude directives, as compose's has.
    (cd "$work/compose"
      go mod init compose-build
      go get -tool "github.com/docker/compose/v2/cmd@v$compose_version"
      CGO_ENABLED=0 nice go build -trimpath -o "$work/docker-compose" \
        -ldflags="-s -w -X github.com/docker/compose/v2/internal.Version=v$compose_version" \
        github.com/docker/compose/v2/cmd)
    mv "$work/docker-compose" "$plugin"
  fi
  mkdir -p "$folder"
  ln -sf "$plugin" "$folder/docker-compose"
  docker compose version
}

[ $# -gt 0 ] || set -- kafka weaviate waymark compose
for target in "$@"; do "$target"; done
docker images --format '{{.Repository}}:{{.Tag}} {{.Size}}'

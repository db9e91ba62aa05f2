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
mkdir -p "$images"
"$here/dockerd.sh" start

has() { docker image inspect "$1" >/dev/null 2>&1; }

base() {
  has debian:bookworm-slim && return
  if [ ! -f "$images/bookworm.tar" ]; then
    local tree
    tree=$(mktemp -d)
    nice debootstrap --variant=minbase bookworm "$tree" > "$images/debootstrap.log"
    tar -C "$tree" -cf "$images/bookworm.tar.part" --one-file-system \
      --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' \
      --exclude='./var/cache/apt/archives/*.deb' --exclude='./var/lib/apt/lists/*' \
      --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' .
    mv "$images/bookworm.tar.part" "$images/bookworm.tar"
    rm -rf "$tree"
  fi
  docker import --change 'CMD ["bash"]' "$images/bookworm.tar" debian:bookworm-slim
}

# build IMAGE FOLDER FILE...: the build's context is FOLDER, with FILE... in its subfolder files
build() {
  local image=$1 folder=$2 context
  shift 2
  context=$(mktemp -d)
  cp -a "$here/$folder/." "$context/"
  mkdir "$context/files"
  cp -a "$@" "$context/files/"
  DOCKER_BUILDKIT=0 docker build -q -t "$image" "$context"
  rm -rf "$context"
}

kafka() {
  has "apache/kafka:$kafka_version" && return
  local jars
  jars=$(cd "$root" && go run ./e2e/kafkalocal/cmd/kafkalocal jars -version "$kafka_version")
  base
  build "apache/kafka:$kafka_version" kafka "$jars"/*.jar
}

weaviate() {
  local image=semitechnologies/weaviate:$weaviate_version bin=$cache/bin
  has "$image" && return
  base
  if [ ! -x "$bin/weaviate-server" ]; then # about 3 minutes on 2 cores, the first time
    (cd / && CGO_ENABLED=0 GOBIN=$bin GOFLAGS=-mod=mod nice go install -trimpath -ldflags='-s -w' \
      "github.com/weaviate/weaviate/cmd/weaviate-server@v$weaviate_version")
  fi
  build "$image" weaviate "$bin/weaviate-server"
}

# waymark compiles on this machine: no image with a compiler is needed.
waymark() {
  local dist=$root/dist
  rm -rf "$dist"
  mkdir -p "$dist/data" "$dist/etc/ssl/certs"
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

compose() { # 2.5 minutes on 2 cores
  docker compose version >/dev/null 2>&1 && return
  local plugin=$HOME/.docker/cli-plugins/docker-compose src=$images/compose-$compose_version
  mkdir -p "$src" "$(dirname "$plugin")"
  # Not 'go install': it refuses a go.mod that has exclude directives, as compose's has.
  (cd "$src"
    [ -f go.mod ] || go mod init compose-build
    go get -tool "github.com/docker/compose/v2/cmd@v$compose_version"
    CGO_ENABLED=0 nice go build -trimpath -o "$plugin" \
      -ldflags="-s -w -X github.com/docker/compose/v2/internal.Version=v$compose_version" \
      github.com/docker/compose/v2/cmd)
}

[ $# -gt 0 ] || set -- kafka weaviate waymark compose
for target in "$@"; do "$target"; done
docker images --format '{{.Repository}}:{{.Tag}} {{.Size}}'

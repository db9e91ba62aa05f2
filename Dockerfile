# The image of Waymark: two static binaries, run by a user without rights, nothing else.
#
#   docker build -t waymark .                                   compiles here
#   docker build --build-arg FILES=prebuilt -t waymark .        takes what stands in dist/ (see e2e/images/build.sh); needs BuildKit
ARG FILES=build

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0
RUN go build -trimpath -ldflags='-s -w' -o /files/waymark ./cmd/waymark \
 && go build -trimpath -ldflags='-s -w' -o /files/healthcheck ./deploy/healthcheck \
 && mkdir -p /files/data /files/blobs /files/etc/ssl/certs \
 && cp /etc/ssl/certs/ca-certificates.crt /files/etc/ssl/certs/

FROM scratch AS prebuilt
COPY dist/ /files/

FROM ${FILES} AS files

FROM scratch
COPY --from=files /files/etc /etc
COPY --from=files /files/waymark /files/healthcheck /
# Volumes that are made for them belong to the user, too.
COPY --from=files --chown=65532:65532 /files/data /data
COPY --from=files --chown=65532:65532 /files/blobs /blobs
ENV WAYMARK_DATA_DIR=/data
USER 65532:65532
VOLUME /data
EXPOSE 8484 9090
ENTRYPOINT ["/waymark"]
CMD ["--help"]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# image.sh NAME VERSION: build the container image with any builder of the machine. BASE names another base image;
# BUILD_FLAGS goes to the builder.
set -eu
cd "$(dirname "$0")/.."

for builder in buildah podman docker; do
	command -v "$builder" >/dev/null || continue
	# docker's client may be there without an engine
	[ "$builder" != docker ] || docker info >/dev/null 2>&1 || continue
	# shellcheck disable=SC2086
	exec "$builder" build ${BUILD_FLAGS:-} ${BASE:+--build-arg BASE="$BASE"} \
		--build-arg VERSION="$2" -t "$1" -f Dockerfile .
done
echo "image: none of buildah, podman and docker (with its engine) is here; 'apt-get install buildah' is enough" >&2
exit 1

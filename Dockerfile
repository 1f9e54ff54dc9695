# SPDX-License-Identifier: Apache-2.0
# The agent's image. Built by 'make image' with whatever of buildah, podman or docker is there.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
COPY test/setup.sh /src/test/setup.sh
RUN /src/test/setup.sh build
COPY . /src
# Not earlier: a new value would install the packages again.
ARG VERSION=unknown
RUN make -C /src -j"$(nproc)" B=/src/build/image VERSION="$VERSION" install DESTDIR=/out PREFIX=/usr && strip /out/usr/bin/podprof
# The packages of the libraries it is linked with, by the suite's own names for them.
RUN ldd /out/usr/bin/podprof | awk '$2 == "=>" { sub(".*/", "*/", $3); print $3 }' | xargs dpkg -S | \
        cut -d : -f 1 | sort -u > /out/packages && cat /out/packages

FROM ${BASE}
COPY --from=build /out/packages /usr/share/doc/podprof/packages
RUN apt-get update -q && \
    xargs apt-get install -q -y --no-install-recommends ca-certificates < /usr/share/doc/podprof/packages && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*
COPY --from=build /out/usr/bin/podprof /usr/bin/podprof
COPY LICENSE /usr/share/doc/podprof/LICENSE
EXPOSE 7070
ENTRYPOINT ["/usr/bin/podprof"]
CMD ["agent"]

module github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster

go 1.26.0

require (
	github.com/google/go-containerregistry v0.20.7
	github.com/spf13/cobra v1.10.2
	golang.org/x/mod v0.32.0
)

require (
	github.com/containerd/stargz-snapshotter/estargz v0.18.1 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/klauspost/compress v1.18.1 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/vbatts/tar-split v0.12.2 // indirect
	golang.org/x/sync v0.18.0 // indirect
)

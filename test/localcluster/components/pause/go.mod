module github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/components/pause

go 1.26.0

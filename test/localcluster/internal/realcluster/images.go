// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package realcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/build"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/image"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
)

// Load puts the images of OCI archives into the node, except those that are
// there already.
func (c Cluster) Load(files ...string) error {
	for _, file := range files {
		refs, err := image.Read(file)
		if err != nil {
			return err
		}
		out, err := ctr("images", "list")
		if err != nil {
			return err
		}
		if loaded(out, refs) {
			c.Report.Line("%s is loaded already", refs[0].Name)
			continue
		}
		if _, err := ctr("images", "import", file); err != nil {
			return err
		}
		for _, ref := range refs {
			c.Report.Line("loaded %s", ref.Name)
		}
	}
	return nil
}

// loaded reports whether a listing by ctr, which begins each line with an
// image's name, type and digest, has all of some images.
func loaded(listing string, refs []image.Reference) bool {
	digests := map[string]string{}
	for line := range strings.Lines(listing) {
		if f := strings.Fields(line); len(f) >= 3 {
			digests[f[0]] = f[2]
		}
	}
	for _, ref := range refs {
		if digests[ref.Name] != ref.Digest {
			return false
		}
	}
	return len(refs) > 0
}

// loadStandardImages makes and loads the images that every cluster has.
func (c Cluster) loadStandardImages(binaries *build.Binaries) error {
	dir := statePath("images")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	pause, err := image.Pause(binaries.Path("pause"))
	if err != nil {
		return err
	}
	busybox, err := image.Busybox()
	if err != nil {
		return err
	}
	pauseFile, busyboxFile := filepath.Join(dir, "pause.tar"), filepath.Join(dir, "busybox.tar")
	if err := image.Write(pause, pauseFile); err != nil {
		return err
	}
	if err := image.Write(busybox, busyboxFile); err != nil {
		return err
	}
	return c.Load(pauseFile, busyboxFile)
}

// containerdReady returns nil if containerd answers.
func (Cluster) containerdReady() error {
	_, err := ctr("version")
	return err
}

// ContainerPID returns the pid, as the host sees it, of the first process of a
// running container.
func (Cluster) ContainerPID(namespace, pod, container string) (string, error) {
	filter := fmt.Sprintf(
		`labels."io.kubernetes.pod.namespace"==%s,labels."io.kubernetes.pod.name"==%s,labels."io.kubernetes.container.name"==%s`,
		namespace, pod, container)
	ids, err := ctr("containers", "list", "--quiet", filter)
	if err != nil {
		return "", err
	}
	tasks, err := ctr("tasks", "list")
	if err != nil {
		return "", err
	}
	for _, id := range strings.Fields(ids) {
		if pid, ok := runningPID(tasks, id); ok {
			return pid, nil
		}
	}
	return "", fmt.Errorf("container %s of pod %s/%s does not run on the real cluster", container, namespace, pod)
}

// runningPID finds a container in a listing of tasks by ctr, whose columns are
// container, pid and status.
func runningPID(listing, container string) (pid string, ok bool) {
	for line := range strings.Lines(listing) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == container && f[2] == "RUNNING" {
			return f[1], true
		}
	}
	return "", false
}

// ctr runs containerd's own client.
func ctr(args ...string) (string, error) {
	return process.Output(append([]string{binary("ctr"), "--address", containerdSocket, "--namespace", "k8s.io"}, args...)...)
}

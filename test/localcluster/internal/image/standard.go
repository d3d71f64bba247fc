// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Names of the images that every real cluster has.
const (
	PauseName   = "sandbox.local/pause:1"
	BusyboxName = "sandbox.local/busybox:1"
)

// Nobody is the user that images of a single program run as.
const Nobody = "65532:65532"

// Pause returns the image of the first process of every pod.
func Pause(binary string) (Spec, error) {
	data, err := os.ReadFile(binary)
	return Spec{
		Name:       PauseName,
		Entrypoint: []string{"/pause"},
		User:       "65535:65535",
		Files:      []File{{Path: "pause", Mode: 0o755, Data: data}},
	}, err
}

// Programs returns the image of one or more static programs. binaries maps
// files of this machine to places in the image.
func Programs(name string, binaries [][2]string, entrypoint []string, user string) (Spec, error) {
	files := baseFiles()
	for _, b := range binaries {
		if err := checkStatic(b[0]); err != nil {
			return Spec{}, err
		}
		data, err := os.ReadFile(b[0])
		if err != nil {
			return Spec{}, err
		}
		dest := strings.TrimPrefix(path.Clean("/"+b[1]), "/")
		files = append(files, parents(dest, files)...)
		files = append(files, File{Path: dest, Mode: 0o755, Data: data})
	}
	return Spec{Name: name, Entrypoint: entrypoint, User: user, Files: files}, nil
}

// Busybox returns an image with a shell and small tools, from Debian's busybox-static.
func Busybox() (Spec, error) {
	const binary = "/bin/busybox"
	if err := checkStatic(binary); err != nil {
		return Spec{}, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return Spec{}, err
	}
	out, err := exec.Command(binary, "--list").Output()
	if err != nil {
		return Spec{}, fmt.Errorf("list the applets of busybox: %w", err)
	}
	return Spec{
		Name:  BusyboxName,
		Cmd:   []string{"/bin/sh"},
		Files: slices.Concat(baseFiles(), busyboxFiles(data, strings.Fields(string(out)))),
	}, nil
}

// busyboxFiles are the program and a link for each of its applets.
func busyboxFiles(program []byte, applets []string) []File {
	files := []File{
		{Path: "bin", Mode: fs.ModeDir | 0o755},
		{Path: "bin/busybox", Mode: 0o755, Data: program},
	}
	for _, applet := range applets {
		if applet != "busybox" {
			files = append(files, File{Path: "bin/" + applet, Mode: fs.ModeSymlink | 0o777, Link: "busybox"})
		}
	}
	return append(files,
		File{Path: "usr", Mode: fs.ModeDir | 0o755},
		File{Path: "usr/bin", Mode: fs.ModeSymlink | 0o777, Link: "../bin"})
}

// baseFiles are what programs expect of any root file system.
func baseFiles() []File {
	return []File{
		{Path: "etc", Mode: fs.ModeDir | 0o755},
		{Path: "etc/passwd", Mode: 0o644, Data: []byte(
			"root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnonroot:x:65532:\nnogroup:x:65534:\n")},
		{Path: "root", Mode: fs.ModeDir | 0o700},
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{Path: "var", Mode: fs.ModeDir | 0o755},
		{Path: "var/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// parents returns the directories above a file that files does not have yet.
func parents(file string, files []File) []File {
	var dirs []File
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if !slices.ContainsFunc(files, func(f File) bool { return f.Path == dir }) {
			dirs = append(dirs, File{Path: dir, Mode: fs.ModeDir | 0o755})
		}
	}
	slices.Reverse(dirs)
	return dirs
}

// checkStatic refuses programs that need a dynamic linker: the images have none.
func checkStatic(file string) error {
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically, so it cannot run in an image without libraries", file)
		}
	}
	return nil
}

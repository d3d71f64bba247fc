// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package image makes container images without a container engine, and reads
// back what they are called. The same contents always give the same image.
package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nameAnnotation is where containerd looks for the full name of an image in an OCI archive.
const nameAnnotation = "io.containerd.image.name"

// Spec describes an image with one layer.
type Spec struct {
	Name       string
	Entrypoint []string
	Cmd        []string
	User       string
	Files      []File
}

// File is a file, directory or symbolic link of an image.
type File struct {
	// Path is relative to the root.
	Path string
	// Mode has the type, too.
	Mode fs.FileMode
	Data []byte
	// Link is what a symbolic link points to.
	Link string
}

// Write makes an image and writes it as an OCI archive.
func Write(spec Spec, to string) error {
	img, err := assemble(spec)
	if err != nil {
		return fmt.Errorf("image %s: %w", spec.Name, err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(to), ".image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "layout")
	path, err := layout.Write(tree, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendImage(img, layout.WithAnnotations(map[string]string{nameAnnotation: spec.Name})); err != nil {
		return err
	}
	archive := filepath.Join(dir, "archive.tar")
	if err := archiveTree(tree, archive); err != nil {
		return err
	}
	return os.Rename(archive, to)
}

// assemble makes the image in memory.
func assemble(spec Spec) (v1.Image, error) {
	layerTar, err := layerTar(spec.Files)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layerTar)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	config.Config.Entrypoint, config.Config.Cmd = spec.Entrypoint, spec.Cmd
	config.Config.User, config.Config.WorkingDir = spec.User, "/"
	return mutate.ConfigFile(img, config)
}

// layerTar archives files in the given order, owned by root, with no times.
func layerTar(files []File) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{Name: f.Path, Mode: tarMode(f.Mode), Format: tar.FormatUSTAR}
		switch {
		case f.Mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, f.Path+"/"
		case f.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Data))
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), w.Close()
}

// tarMode converts permissions; Go keeps the sticky bit elsewhere than tar.
func tarMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	if m&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}

// archiveTree writes the files of a directory into a tar archive, sorted and
// with no times.
func archiveTree(dir, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	return errors.Join(err, w.Close())
}

// Reference names an image.
type Reference struct{ Name, Digest string }

// Read returns the references of the images in an OCI archive that Write made.
func Read(file string) ([]Reference, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("%s: no index.json: %w", file, err)
		}
		if filepath.Clean(h.Name) != "index.json" {
			continue
		}
		var index v1.IndexManifest
		if err := json.NewDecoder(r).Decode(&index); err != nil {
			return nil, fmt.Errorf("%s: index.json: %w", file, err)
		}
		var refs []Reference
		for _, m := range index.Manifests {
			refs = append(refs, Reference{m.Annotations[nameAnnotation], m.Digest.String()})
		}
		return refs, nil
	}
}

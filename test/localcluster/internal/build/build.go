// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package build compiles the components of the local clusters into a cache
// outside the source tree and finds them there.
//
// The cache directory of a component is named after its version and a hash of
// all that determines the result, so that a changed pin is a new directory and
// clusters that run the old one are not disturbed. A binary gets its final name
// only when it is complete.
package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/mod/modfile"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/component"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/debian"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/filelock"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/progress"
)

// Builder builds components.
type Builder struct {
	// Source is the directory components/ of this module.
	Source string
	// Cache is the directory that holds all results.
	Cache  string
	Report *progress.Reporter
}

// Binaries are the finished files of a profile.
type Binaries struct {
	files map[string]string
	// Dirs maps component names to their cache directories.
	Dirs map[string]string
}

// Path returns the file of a program. Asking for one that the profile does not
// have is a mistake in this program and gives a path that cannot be started.
func (b *Binaries) Path(command string) string {
	if p, ok := b.files[command]; ok {
		return p
	}
	return filepath.Join("/nonexistent", command)
}

// All maps the names of all programs to their files.
func (b *Binaries) All() map[string]string { return b.files }

// Versions maps components to what identifies their programs, wherever the cache is.
func (b *Binaries) Versions() map[string]string {
	versions := map[string]string{}
	for name, dir := range b.Dirs {
		versions[name] = filepath.Base(dir)
	}
	return versions
}

// CacheDir returns the directory for results: outside of the source tree, since
// it outlives checkouts and is shared by them.
func CacheDir(getenv func(string) string) (string, error) {
	if dir := getenv("SANDBOX_CACHE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	base := getenv("XDG_CACHE_HOME")
	if base == "" {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("no cache directory: none of SANDBOX_CACHE_DIR, XDG_CACHE_HOME and HOME is set")
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "sandbox-apiserver"), nil
}

// Build makes everything that a profile needs and returns where it is. What is
// in the cache already is left as it is.
func (b *Builder) Build(ctx context.Context, profile component.Profile) (*Binaries, error) {
	result := &Binaries{files: map[string]string{}, Dirs: map[string]string{}}
	if profile == component.Real {
		if err := debian.Install(ctx, b.Report); err != nil {
			return nil, err
		}
	}
	for _, c := range component.For(profile) {
		dir, err := b.component(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", c.Name, err)
		}
		result.Dirs[c.Name] = dir
		for _, cmd := range c.Commands {
			result.files[cmd.Name] = filepath.Join(dir, cmd.Name)
		}
	}
	return result, nil
}

// component builds what is missing of one component and returns its cache directory.
func (b *Builder) component(ctx context.Context, c component.Component) (string, error) {
	source := filepath.Join(b.Source, c.Name)
	version, err := requiredVersion(source, c.Module)
	if err != nil {
		return "", err
	}
	args := goBuildArgs(c, version)
	key, err := cacheKey(source, args)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(b.Cache, strings.Join([]string{c.Name, version, key}, "-"))
	if len(missing(dir, c)) == 0 {
		return dir, nil
	}
	// Two processes that build the same thing at once only slow each other down.
	var lock *filelock.Lock
	err = b.Report.Track("waiting for another build of "+c.Name, nil, func() (err error) {
		lock, err = filelock.Acquire(ctx, filepath.Join(b.Cache, ".locks", filepath.Base(dir)))
		return err
	})
	if err != nil {
		return "", err
	}
	defer lock.Remove()
	return dir, b.fill(ctx, c, source, dir, args)
}

// fill makes the missing files of a component's cache directory. They are made
// in a directory beside it and renamed when complete, so that an interrupted
// build leaves nothing that looks finished.
func (b *Builder) fill(ctx context.Context, c component.Component, source, dir string, args []string) error {
	todo := missing(dir, c)
	if len(todo) == 0 {
		return nil // the other build made it
	}
	scratch := filepath.Join(b.Cache, ".build-"+filepath.Base(dir))
	defer os.RemoveAll(scratch)
	// A killed build may have left it.
	if err := os.RemoveAll(scratch); err != nil {
		return err
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args = slices.Concat(args, []string{"-o", scratch + "/"})
	for _, cmd := range todo {
		args = append(args, cmd.Package)
	}
	if err := b.compile(ctx, c, source, args); err != nil {
		return err
	}
	// The module is on this machine only after it was compiled, and the
	// directory counts as filled when it has the programs.
	if c.ExtractTo != "" {
		if err := extract(ctx, c, source, filepath.Join(scratch, c.ExtractTo)); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(scratch, c.ExtractTo), filepath.Join(dir, c.ExtractTo)); err != nil {
			return err
		}
	}
	for _, cmd := range todo {
		if err := os.Rename(filepath.Join(scratch, outputName(c, cmd)), filepath.Join(dir, cmd.Name)); err != nil {
			return err
		}
	}
	return nil
}

// compile runs go build and reports how far it is.
func (b *Builder) compile(ctx context.Context, c component.Component, source string, args []string) error {
	b.Report.Line("building %s", c.Name)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	cmd.Env = goEnv(os.Environ(), c.CGO)
	var output counter
	cmd.Stdout, cmd.Stderr = &output, &output
	err := b.Report.Track("building "+c.Name, output.status, cmd.Run)
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, output.tail())
	}
	b.Report.Line("built %s", c.Name)
	return nil
}

// missing lists the programs of a component that its cache directory lacks.
func missing(dir string, c component.Component) []component.Command {
	var out []component.Command
	for _, cmd := range c.Commands {
		if _, err := os.Stat(filepath.Join(dir, cmd.Name)); err != nil {
			out = append(out, cmd)
		}
	}
	return out
}

// goBuildArgs are the arguments of the go command but for output and packages.
func goBuildArgs(c component.Component, version string) []string {
	ldflags := []string{"-s", "-w"}
	if c.LDFlags != nil {
		ldflags = append(ldflags, c.LDFlags(version)...)
	}
	args := []string{
		"build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags=" + strings.Join(ldflags, " "),
	}
	if len(c.Tags) > 0 {
		args = append(args, "-tags="+strings.Join(c.Tags, ","))
	}
	return args
}

// goEnv is the environment of the go command: the caller's own build settings
// must not change what the cache key stands for.
func goEnv(environ []string, cgo bool) []string {
	enabled := "CGO_ENABLED=0"
	if cgo {
		enabled = "CGO_ENABLED=1"
	}
	return append(slices.Clone(environ), "GOFLAGS=", "GOWORK=off", enabled)
}

// requiredVersion reads the version of a module from the go.mod in dir.
func requiredVersion(dir, module string) (string, error) {
	if module == "" {
		return "local", nil
	}
	file := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	mod, err := modfile.Parse(file, data, nil)
	if err != nil {
		return "", err
	}
	for _, r := range mod.Require {
		if r.Mod.Path == module {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", file, module)
}

// cacheKey hashes a wrapper module and the build flags.
func cacheKey(dir string, args []string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	h := sha256.New()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(file), len(data), data)
	}
	fmt.Fprintf(h, "%q", args)
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

var majorSuffix = regexp.MustCompile(`^v[0-9]+$`)

// outputName is the file name that go build -o DIR/ gives to a program: the
// last element of its import path that is not a major version.
func outputName(c component.Component, cmd component.Command) string {
	if cmd.Package == "." {
		return c.Name
	}
	if base := path.Base(cmd.Package); !majorSuffix.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(cmd.Package))
}

// extract joins files of a component's module into one.
func extract(ctx context.Context, c component.Component, source, to string) error {
	list := exec.CommandContext(ctx, "go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", c.Module)
	list.Dir = source
	list.Env = goEnv(os.Environ(), false)
	moduleDir, err := list.Output()
	if err != nil {
		return fmt.Errorf("find module %s: %w", c.Module, err)
	}
	var joined bytes.Buffer
	for _, name := range c.Extract {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(moduleDir)), name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&joined, "---\n%s\n", data)
	}
	return os.WriteFile(to, joined.Bytes(), 0o644)
}

// counter takes the output of go build -v, which is one line for each module it
// downloads and each package it compiles.
type counter struct {
	lines atomic.Int64
	last  []byte
}

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	c.lines.Add(int64(bytes.Count(p, []byte{'\n'})))
	c.last = append(c.last, p...)
	if keep := 4096; len(c.last) > keep {
		c.last = c.last[len(c.last)-keep:]
	}
	return len(p), nil
}

func (c *counter) status() string { return fmt.Sprintf("%d modules and packages", c.lines.Load()) }

// tail is only to be called when the command has ended.
func (c *counter) tail() string { return string(c.last) }

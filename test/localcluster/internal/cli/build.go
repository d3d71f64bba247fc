// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/build"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/component"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/fsys"
)

// newBuild returns the command that fills the cache.
func (a *app) newBuild() *cobra.Command {
	var outDir string
	cmd := &cobra.Command{
		Use:   "build real|light",
		Short: "Build the programs of a profile into the cache",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			profile, err := component.ParseProfile(args[0])
			if err != nil {
				return err
			}
			binaries, err := a.build(cmd.Context(), profile)
			if err != nil || outDir == "" {
				return err
			}
			return fsys.Install(binaries.Path("kubectl"), filepath.Join(outDir, "kubectl"))
		},
	}
	cmd.Flags().StringVar(&outDir, "out-dir", "", "Directory to put kubectl into.")
	return cmd
}

// build makes sure that the programs of a profile are there.
func (a *app) build(ctx context.Context, profile component.Profile) (*build.Binaries, error) {
	cache, err := build.CacheDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	source := a.componentsDir
	if source == "" {
		if source, err = sourceDir(); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	b := build.Builder{Source: source, Cache: cache, Report: a.report}
	return b.Build(ctx, profile)
}

// sourceDir finds components/ beside the source that this program was compiled
// from: wrapper modules cannot be embedded, as go:embed stops at a go.mod.
func sourceDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	dir := filepath.Join(filepath.Dir(file), "..", "..", "components")
	if _, err := os.Stat(dir); !ok || !filepath.IsAbs(file) || err != nil {
		return "", errors.New("this program was moved away from its source: name the directory with --components-dir")
	}
	return dir, nil
}

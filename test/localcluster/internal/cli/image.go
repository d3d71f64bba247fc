// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/image"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/realcluster"
)

// newImage returns the command that makes an image.
func (a *app) newImage() *cobra.Command {
	var (
		name, user, out      string
		binaries, entrypoint []string
	)
	cmd := &cobra.Command{
		Use:   "image [busybox]",
		Short: "Make an image of static programs, or the busybox image, as an OCI archive",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := image.Busybox()
			switch {
			case len(args) == 1 && args[0] != "busybox":
				return fmt.Errorf("unknown image %q", args[0])
			case len(args) == 0 && (name == "" || len(binaries) == 0):
				return fmt.Errorf("--name and --binary are required, except for busybox")
			case len(args) == 0:
				pairs := binaryPairs(binaries)
				if len(entrypoint) == 0 {
					entrypoint = []string{pairs[0][1]}
				}
				spec, err = image.Programs(name, pairs, entrypoint, user)
			}
			if err != nil {
				return err
			}
			return image.Write(spec, out)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "Name and tag of the image.")
	cmd.Flags().StringArrayVar(&binaries, "binary", nil, "Static program, as PATH or PATH:DESTINATION. May be repeated.")
	cmd.Flags().StringArrayVar(&entrypoint, "entrypoint", nil,
		"An element of the image's command; repeat it for arguments. Default: the first program.")
	cmd.Flags().StringVar(&user, "user", image.Nobody, "User and group that the image runs as.")
	cmd.Flags().StringVar(&out, "out", "", "File to write.")
	markRequired(cmd, "out")
	return cmd
}

// binaryPairs splits PATH[:DESTINATION]; by default a program goes to the root.
func binaryPairs(values []string) [][2]string {
	var pairs [][2]string
	for _, v := range values {
		from, to, ok := strings.Cut(v, ":")
		if !ok {
			to = "/" + path.Base(from)
		}
		pairs = append(pairs, [2]string{from, to})
	}
	return pairs
}

// newLoad returns the command that brings images to the real cluster.
func (a *app) newLoad() *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE.tar...",
		Short: "Load images into the real cluster, except those that it has",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return realcluster.New(a.report).Load(args...)
		},
	}
}

// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/component"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/controlplane"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/lightcluster"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/realcluster"
)

// newUp returns the command that starts a cluster.
func (a *app) newUp() *cobra.Command {
	up := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster, unless a healthy one of the same configuration runs",
		Args:  cobra.NoArgs,
		RunE:  profileMissing,
	}
	up.AddCommand(a.newUpReal(), a.newUpLight())
	return up
}

func (a *app) newUpReal() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "real",
		Short: "One node with kubelet, containerd and runc; one such cluster on a machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireRoot(); err != nil {
				return err
			}
			binaries, err := a.build(cmd.Context(), component.Real)
			if err != nil {
				return err
			}
			return realcluster.New(a.report).Up(cmd.Context(), binaries, kubeconfig)
		},
	}
	addKubeconfigFlag(cmd, &kubeconfig)
	return cmd
}

func (a *app) newUpLight() *cobra.Command {
	var (
		dir, kubeconfig string
		options         lightcluster.Options
	)
	cmd := &cobra.Command{
		Use:   "light",
		Short: "A control plane with simulated nodes; one such cluster in a directory",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(requireRoot(), checkOptions(options)); err != nil {
				return err
			}
			c, err := a.light(dir)
			if err != nil {
				return err
			}
			binaries, err := a.build(cmd.Context(), component.Light)
			if err != nil {
				return err
			}
			return c.Up(cmd.Context(), options, binaries, kubeconfig)
		},
	}
	addDirFlag(cmd, &dir)
	addKubeconfigFlag(cmd, &kubeconfig)
	cmd.Flags().Uint16Var(&options.Port, "port", 16443,
		fmt.Sprintf("Port of the API server. The %d ports after it are used too.", lightcluster.PortsPerCluster-1))
	cmd.Flags().IntVar(&options.Nodes, "nodes", 1, "Number of simulated nodes.")
	return cmd
}

func checkOptions(o lightcluster.Options) error {
	if o.Port == 0 || o.Port > math.MaxUint16-lightcluster.PortsPerCluster {
		return fmt.Errorf("--port %d: the ports from it on must exist", o.Port)
	}
	if o.Nodes < 1 {
		return fmt.Errorf("--nodes %d: there must be a node", o.Nodes)
	}
	return nil
}

// newDown returns the command that removes a cluster.
func (a *app) newDown() *cobra.Command {
	down := &cobra.Command{
		Use:   "down",
		Short: "Remove a cluster and everything it left on the machine",
		Args:  cobra.NoArgs,
		RunE:  profileMissing,
	}
	down.AddCommand(&cobra.Command{
		Use:   "real",
		Short: "Remove the real cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireRoot(); err != nil {
				return err
			}
			return realcluster.New(a.report).Down(cmd.Context())
		},
	})
	var dir string
	light := &cobra.Command{
		Use:   "light",
		Short: "Remove the light cluster of a directory",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.light(dir)
			if err := errors.Join(requireRoot(), err); err != nil {
				return err
			}
			return c.Down(cmd.Context())
		},
	}
	addDirFlag(light, &dir)
	down.AddCommand(light)
	return down
}

// programs are those that can be started beside a light cluster, for messages.
const programs = "sandbox-apiserver|sandbox-controller|" + lightcluster.ExternalEtcd

// newStart returns the command that starts this project's programs.
func (a *app) newStart() *cobra.Command {
	var (
		dir, binary string
		instance    int
		asJSON      bool
	)
	cmd := &cobra.Command{
		Use:   "start " + programs + " [-- ARGS...]",
		Short: "Start a program beside a light cluster and wait until it serves",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.light(dir)
			if err != nil {
				return err
			}
			file, err := a.productBinary(cmd.Context(), args[0], binary)
			if err != nil {
				return err
			}
			started, err := c.StartProduct(cmd.Context(), lightcluster.Process{Program: args[0], Instance: instance}, file, args[1:])
			if err != nil || !asJSON {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(started)
		},
	}
	addDirFlag(cmd, &dir)
	addInstanceFlag(cmd, &instance)
	cmd.Flags().StringVar(&binary, "bin", "", "File of the program. Default for "+lightcluster.ExternalEtcd+": that of the cluster's etcd.")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print the name of the process, its pid and where it serves.")
	return cmd
}

// productBinary returns the absolute path of a program to start: its working
// directory is another one.
func (a *app) productBinary(ctx context.Context, program, file string) (string, error) {
	if file != "" {
		return filepath.Abs(file)
	}
	if program != lightcluster.ExternalEtcd {
		return "", fmt.Errorf("--bin must name the file of %s", program)
	}
	binaries, err := a.build(ctx, component.Light)
	if err != nil {
		return "", err
	}
	return binaries.Path(controlplane.Etcd), nil
}

// newRoute returns the command that chooses the server of the API.
func (a *app) newRoute() *cobra.Command {
	var (
		dir      string
		instance int
	)
	cmd := &cobra.Command{
		Use:   "route sandbox-apiserver",
		Short: "Make kube-apiserver of a light cluster pass requests on to another instance of the server",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.light(dir)
			if err != nil {
				return err
			}
			return c.Route(cmd.Context(), lightcluster.Process{Program: args[0], Instance: instance})
		},
	}
	addDirFlag(cmd, &dir)
	addInstanceFlag(cmd, &instance)
	return cmd
}

// newStop returns the command that stops this project's programs.
func (a *app) newStop() *cobra.Command {
	var (
		dir      string
		instance int
		kill     bool
	)
	cmd := &cobra.Command{
		Use:   "stop " + programs,
		Short: "Stop a program that was started beside a light cluster",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.light(dir)
			if err != nil {
				return err
			}
			return c.StopProduct(cmd.Context(), lightcluster.Process{Program: args[0], Instance: instance}, kill)
		},
	}
	addDirFlag(cmd, &dir)
	addInstanceFlag(cmd, &instance)
	cmd.Flags().BoolVar(&kill, "kill", false, "End it at once with SIGKILL.")
	return cmd
}

// newContainerPID returns the command that finds the process of a container.
func (a *app) newContainerPID() *cobra.Command {
	var namespace, pod, container string
	cmd := &cobra.Command{
		Use:   "container-pid",
		Short: "Print the pid on the host of a running container of the real cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pid, err := realcluster.New(a.report).ContainerPID(namespace, pod, container)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), pid)
			return err
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "default", "Namespace of the pod.")
	cmd.Flags().StringVar(&pod, "pod", "", "Name of the pod.")
	cmd.Flags().StringVar(&container, "container", "", "Name of the container.")
	markRequired(cmd, "pod", "container")
	return cmd
}

// profileMissing is run for a command that was given no profile.
func profileMissing(*cobra.Command, []string) error {
	return fmt.Errorf("name a profile: %s or %s", component.Real, component.Light)
}

// light returns the light cluster of a directory.
func (a *app) light(dir string) (lightcluster.Cluster, error) {
	abs, err := filepath.Abs(dir)
	return lightcluster.New(abs, a.report), err
}

func addDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "Directory of the light cluster's state.")
	markRequired(cmd, "dir")
}

func addInstanceFlag(cmd *cobra.Command, instance *int) {
	cmd.Flags().IntVar(instance, "instance", 1, fmt.Sprintf("Which process of the program, from 1 to %d.", lightcluster.MaxInstances))
}

func addKubeconfigFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "kubeconfig", "", "File to write the administrator's kubeconfig to.")
}

// requireRoot gives a better message than the first system call that fails.
func requireRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can make namespaces, links and routes")
	}
	return nil
}

// markRequired panics if there is no such flag: that is a mistake in this package.
func markRequired(cmd *cobra.Command, flags ...string) {
	for _, f := range flags {
		if err := cmd.MarkFlagRequired(f); err != nil {
			panic(err)
		}
	}
}

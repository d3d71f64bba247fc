package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/component"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/realcluster"
)

// newUp returns the command that starts a cluster.
func (a *app) newUp() *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{
		Use:   "up real|light",
		Short: "Start a cluster, unless a healthy one of the same configuration runs",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			profile, err := component.ParseProfile(args[0])
			if err != nil {
				return err
			}
			if err := requireRoot(); err != nil {
				return err
			}
			binaries, err := a.build(cmd.Context(), profile)
			if err != nil {
				return err
			}
			return realcluster.Up(cmd.Context(), a.report, binaries, kubeconfig)
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "File to write the administrator's kubeconfig to.")
	return cmd
}

// newDown returns the command that removes a cluster.
func (a *app) newDown() *cobra.Command {
	return &cobra.Command{
		Use:   "down real|light",
		Short: "Remove a cluster and everything it left on the machine",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := component.ParseProfile(args[0]); err != nil {
				return err
			}
			if err := requireRoot(); err != nil {
				return err
			}
			return realcluster.Down(cmd.Context(), a.report)
		},
	}
}

// newContainerPID returns the command that finds the process of a container.
func (a *app) newContainerPID() *cobra.Command {
	var namespace, pod, container string
	cmd := &cobra.Command{
		Use:   "container-pid",
		Short: "Print the pid on the host of a running container of the real cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			pid, err := realcluster.ContainerPID(namespace, pod, container)
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

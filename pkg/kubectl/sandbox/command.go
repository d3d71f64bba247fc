// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	goflag "flag"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd/options"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned"
)

// NewCommand returns the command `kubectl sandbox`. Its errors are meant for k8s.io/kubectl/pkg/cmd/util.CheckErr, which
// words them and chooses the exit code.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "kubectl-sandbox",
		// kubectl runs the binary, so its name is not what people type.
		Annotations:           map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl sandbox"},
		DisableFlagsInUseLine: true,
		Short:                 "Work with sandboxes",
		Long:                  "Run commands in sandboxes, suspend and resume them.",
		SilenceErrors:         true,
		SilenceUsage:          true,
		// kubectl asks plugins for completions in its own way.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Run:               func(cmd *cobra.Command, _ []string) { _ = cmd.Help() },
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)

	config := genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams)
	config.AddFlags(cmd.PersistentFlags())
	addVerbosityFlag(cmd)

	group := templates.CommandGroup{Message: "Available Commands:", Commands: []*cobra.Command{
		newExecCommand(config, streams),
		newSuspendCommand(config, streams),
		newResumeCommand(config, streams),
	}}
	templates.CommandGroups{group}.Add(cmd)
	templates.ActsAsRootCommand(cmd, []string{"options"}, group)
	cmd.AddCommand(options.NewCmdOptions(streams.Out))
	return cmd
}

// addVerbosityFlag adds klog's -v, at whose higher levels the client logs its requests.
func addVerbosityFlag(cmd *cobra.Command) {
	flags := goflag.NewFlagSet("", goflag.ContinueOnError)
	klog.InitFlags(flags)
	cmd.PersistentFlags().AddGoFlag(flags.Lookup("v"))
}

// connect returns what the flags and the kubeconfig choose: the client and the namespace.
func connect(config genericclioptions.RESTClientGetter) (versioned.Interface, string, error) {
	namespace, _, err := config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", err
	}
	restConfig, err := config.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	client, err := versioned.NewForConfig(restConfig)
	if err != nil {
		return nil, "", err
	}
	return client, namespace, nil
}

// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// parse returns the options that a command line gives.
func parse(t *testing.T, args ...string) *Options {
	t.Helper()
	o := New()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"defaults", nil, ""},
		{"external etcd", []string{"--etcd-servers=https://etcd:2379", "--etcd-data-dir="}, ""},
		{"external etcd with overrides", []string{"--etcd-servers=https://a:2379", "--etcd-servers-overrides=agents.x-k8s.io/sandboxes#https://b:2379"}, ""},
		{"no etcd at all", []string{"--etcd-data-dir="}, "--etcd-data-dir"},
		{"overrides without servers", []string{"--etcd-servers-overrides=agents.x-k8s.io/sandboxes#https://b:2379"}, "--etcd-servers-overrides"},
		{"negative quota", []string{"--etcd-quota-backend-bytes=-1"}, "--etcd-quota-backend-bytes"},
		{"unknown media type", []string{"--etcd-servers=https://a:2379", "--storage-media-type=text/plain"}, "--storage-media-type"},
		{"own certificate", []string{"--serving-cert-secret=cert"}, ""},
		{"own certificate without a Service", []string{"--serving-cert-secret=cert", "--serving-cert-service="}, "--serving-cert-service"},
		{"two certificates", []string{"--serving-cert-secret=cert", "--tls-cert-file=f", "--tls-private-key-file=k"}, "--tls-cert-file"},
		{"fence without a record", []string{"--storage-fence-configmap="}, "--storage-fence-configmap"},
		{"no fence", []string{"--storage-fence=false", "--storage-fence-configmap="}, ""},
		{"negative number of streams", []string{"--max-streams=-1"}, "--max-streams"},
		{"negative drain", []string{"--stream-drain=-1s"}, "--stream-drain"},
		{"unknown admission plugin", []string{"--enable-admission-plugins=Nonsense"}, "Nonsense"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := parse(t, test.args...).Validate()
			if test.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one that names %s", err, test.want)
			}
		})
	}
}

func TestEtcdIsEmbeddedUnlessServersAreNamed(t *testing.T) {
	if !parse(t).UsesEmbeddedEtcd() {
		t.Error("without servers etcd is not embedded")
	}
	if parse(t, "--etcd-servers=https://etcd:2379").UsesEmbeddedEtcd() {
		t.Error("with servers etcd is embedded")
	}
}

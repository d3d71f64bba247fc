// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/etcdclient"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/factory"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/fence"
)

// StorageFenceOptions say whether a storage that lost data is fenced off, and where the record of it is kept.
type StorageFenceOptions struct {
	Enabled       bool
	ConfigMapName string
}

// AddFlags adds the flags.
func (o *StorageFenceOptions) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Enabled, "storage-fence", o.Enabled,
		"Refuse requests while etcd is not known to hold all that it once held. Without it an etcd that lost its data makes the garbage "+
			"collector delete the Pods and PersistentVolumeClaims of all Sandboxes.")
	fs.StringVar(&o.ConfigMapName, "storage-fence-configmap", o.ConfigMapName,
		"ConfigMap in --namespace that remembers what etcd held. Servers of different storages must not share one.")
}

// ApplyTo puts a fence around all of the etcds into the handler chain and the readiness of the server. config must have its
// ClientConfig. What it returns is to be run, from before the first request until after the last: see fence.Fence.Run.
func (o *StorageFenceOptions) ApplyTo(config *genericapiserver.RecommendedConfig, etcds []factory.Etcd, namespace string) (func(context.Context) error, error) {
	var storages []fence.Storage
	for _, etcd := range etcds {
		client, err := etcdclient.New(etcd.Transport)
		if err != nil {
			return nil, err
		}
		storages = append(storages, fence.Storage{Name: etcd.Name, Client: client})
	}
	core, err := corev1client.NewForConfig(config.ClientConfig)
	if err != nil {
		return nil, err
	}
	f, err := fence.New(storages, core, fence.Config{
		ConfigMap: types.NamespacedName{Namespace: namespace, Name: o.ConfigMapName},
		Period:    fence.DefaultPeriod,
	}, clock.RealClock{}, legacyregistry.Register)
	if err != nil {
		return nil, err
	}
	config.AddReadyzChecks(f)
	chain := config.BuildHandlerChainFunc
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return chain(f.WithFence(handler, c.Serializer), c)
	}
	return func(ctx context.Context) error {
		err := f.Run(ctx)
		for _, storage := range storages {
			err = errors.Join(err, storage.Client.Close())
		}
		return err
	}, nil
}

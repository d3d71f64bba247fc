// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver assembles the aggregated API server: serialization, OpenAPI, API groups, hooks and readiness. It knows no resource by
// name; the registry does.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/version"
	"k8s.io/utils/clock"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/labeldomains"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/proxy"
	agentsrest "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/rest"
	extensionsrest "github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/extensions/rest"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/binder"
)

// ExtraConfig is what the server needs beyond what every API server does.
type ExtraConfig struct {
	// MaxStreams bounds the number of streams (exec and its like) that are open at a time. 0 means no bound.
	MaxStreams int
	// StreamDrain is how long streams may go on after the server was told to stop.
	StreamDrain time.Duration
	// AllowedLabelDomainsFile is the path of the file that says which labels claims may put on Pods. Empty means the default.
	AllowedLabelDomainsFile string
	// Etcd returns a client of the etcd that claims are stored in, for binding them. Defaults to one that connects to it.
	Etcd func(storagebackend.TransportConfig) (*clientv3.Client, error)
}

// Config configures the server. Options fill GenericConfig; NewConfig prepares it.
type Config struct {
	GenericConfig *genericapiserver.RecommendedConfig
	ExtraConfig   ExtraConfig
	// ClientCA is the authority of clients' certificates that may come only after the server has started. nil means that there is none
	// to wait for.
	ClientCA dynamiccertificates.CAContentProvider

	serialization Serialization
}

// NewConfig returns a Config that describes our API; what depends on options is left open.
func NewConfig(serialization Serialization, extra ExtraConfig) *Config {
	generic := genericapiserver.NewRecommendedConfig(serialization.Codecs)
	setOpenAPI(&generic.Config, serialization.Scheme, version.Get().GitVersion)
	// A front kube-apiserver decides by the same names: any other would be cut off after its request timeout, here and there.
	generic.LongRunningFunc = genericfilters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"),
		sets.NewString("attach", "exec", "proxy", "log", "portforward"),
	)
	return &Config{GenericConfig: generic, ExtraConfig: extra, serialization: serialization}
}

// New returns a server that is ready to be run. It fails if storage or kube-apiserver cannot be configured; it does not need to reach
// either.
func (c *Config) New() (*genericapiserver.GenericAPIServer, error) {
	c.knowWhoAsks()
	c.GenericConfig.Authorization.Authorizer = namesLast{c.GenericConfig.Authorization.Authorizer}
	completed := c.GenericConfig.Complete()
	server, err := completed.New("sandbox-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	streams, err := proxy.NewStreams(c.ExtraConfig.MaxStreams, legacyregistry.Register)
	if err != nil {
		return nil, err
	}
	domains, err := followLabelDomains(server, c.ExtraConfig.AllowedLabelDomainsFile)
	if err != nil {
		return nil, err
	}
	binding, err := c.newBinder(server, domains.Current)
	if err != nil {
		return nil, err
	}
	storageOptions := binding.Decorate(completed.RESTOptionsGetter)
	agentsStorage, err := c.agentsStorage(completed, streams, storageOptions)
	if err != nil {
		return nil, fmt.Errorf("API group %s: %w", agents.GroupName, err)
	}
	extensionsStorage, err := extensionsrest.Provider{
		Scheme:       c.serialization.Scheme,
		Binder:       binding,
		LabelDomains: domains.Current,
	}.Storage(storageOptions)
	if err != nil {
		return nil, fmt.Errorf("API group %s: %w", extensions.GroupName, err)
	}
	if err := server.InstallAPIGroups(c.group(agents.GroupName, agentsStorage), c.group(extensions.GroupName, extensionsStorage)); err != nil {
		return nil, fmt.Errorf("installing the API groups: %w", err)
	}
	return server, server.AddPreShutdownHook("drain-streams", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), c.ExtraConfig.StreamDrain)
		defer cancel()
		return streams.Shutdown(ctx)
	})
}

// group returns what there is to install of an API group, given its storage by served version and resource.
func (c *Config) group(name string, storage map[string]map[string]rest.Storage) *genericapiserver.APIGroupInfo {
	group := genericapiserver.NewDefaultAPIGroupInfo(name, c.serialization.Scheme, c.serialization.ParameterCodec, c.serialization.Codecs)
	group.VersionedResourcesStorageMap = storage
	return &group
}

func (c *Config) agentsStorage(completed genericapiserver.CompletedConfig, streams *proxy.Streams,
	storageOptions generic.RESTOptionsGetter) (map[string]map[string]rest.Storage, error) {
	types, err := newTypeConverter(completed.OpenAPIV3Config, agentsv1beta1.Sandbox{}.OpenAPIModelName())
	if err != nil {
		return nil, err
	}
	streamer, err := proxy.NewPodStreamer(c.GenericConfig.ClientConfig, streams)
	if err != nil {
		return nil, err
	}
	core, err := corev1client.NewForConfig(c.GenericConfig.ClientConfig)
	if err != nil {
		return nil, err
	}
	return agentsrest.Provider{
		Scheme:     c.serialization.Scheme,
		Types:      types,
		Authorizer: completed.Authorization.Authorizer,
		Pods:       core,
		Streamer:   streamer,
	}.Storage(storageOptions)
}

// newBinder returns what gives Sandboxes to claims. The server is ready when it knows what there is to give.
func (c *Config) newBinder(server *genericapiserver.GenericAPIServer, domains func() labeldomains.List) (*binder.Binder, error) {
	binding, err := binder.New(binder.Config{
		Scheme:       c.serialization.Scheme,
		LabelDomains: domains,
		Etcd:         c.ExtraConfig.Etcd,
		Clock:        clock.RealClock{},
		Metrics:      binder.Registry{Register: legacyregistry.Register, RegisterCollector: legacyregistry.CustomRegister},
	})
	if err != nil {
		return nil, err
	}
	return binding, errors.Join(
		server.AddReadyzChecks(binding),
		server.AddPostStartHook("bind-claims", func(hook genericapiserver.PostStartHookContext) error {
			go func() {
				if err := binding.Run(hook); err != nil {
					utilruntime.HandleErrorWithContext(hook, err, "Claims are not bound")
				}
			}()
			return nil
		}))
}

// followLabelDomains returns the file at path, which is read again for as long as the server runs.
func followLabelDomains(server *genericapiserver.GenericAPIServer, path string) (*labeldomains.File, error) {
	file, err := labeldomains.NewFile(path)
	if err != nil {
		return nil, err
	}
	return file, server.AddPostStartHook("follow-label-domains", func(hook genericapiserver.PostStartHookContext) error {
		go file.Run(hook)
		return nil
	})
}

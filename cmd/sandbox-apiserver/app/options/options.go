// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package options holds the flags of sandbox-apiserver and what they do to its configuration.
package options

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/apis/apiserver"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
	baseversion "k8s.io/component-base/version"

	sandboxadmission "github.com/sandbox-apiserver/sandbox-apiserver/pkg/admission"
	sandboxapiserver "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apiserver"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/servingcert"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/embedded"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/factory"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/storage/fence"
)

// Options are the settings of the server.
type Options struct {
	Recommended      *genericoptions.RecommendedOptions
	ServerRun        *genericoptions.ServerRunOptions
	Logs             *logsapi.LoggingConfiguration
	ComponentGlobals compatibility.ComponentGlobalsRegistry
	// EmbeddedEtcd applies if no etcd servers are named.
	EmbeddedEtcd embedded.Config
	// Namespace is that of the server's own objects. Empty means that of the Pod.
	Namespace    string
	ServingCert  ServingCertOptions
	StorageFence StorageFenceOptions
	Extra        sandboxapiserver.ExtraConfig
}

// New returns the defaults.
func New() *Options {
	recommended := genericoptions.NewRecommendedOptions(factory.EtcdPrefix, nil)
	recommended.Etcd.DefaultStorageMediaType = runtime.ContentTypeProtobuf
	// Deleting a namespace full of sandboxes is an everyday affair; one worker would take them one round trip at a time.
	recommended.Etcd.DeleteCollectionWorkers = 16
	recommended.SecureServing.BindPort = 8443
	sandboxadmission.AddPlugins(recommended.Admission)
	recommended.ExtraAdmissionInitializers = func(config *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
		return sandboxadmission.Initializers(config.ClientConfig)
	}
	// Only probes need no identity.
	recommended.Authentication.Anonymous = &apiserver.AnonymousAuthConfig{
		Enabled:    true,
		Conditions: []apiserver.AnonymousAuthCondition{{Path: "/livez"}, {Path: "/readyz"}, {Path: "/healthz"}},
	}

	// The library reads the gates of the process, so all Options share them.
	if _, known := utilfeature.DefaultMutableFeatureGate.GetAll()[logsapi.ContextualLogging]; !known {
		utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
	}
	globals := compatibility.NewComponentGlobalsRegistry()
	utilruntime.Must(globals.Register(compatibility.DefaultKubeComponent,
		compatibility.NewEffectiveVersionFromString(baseversion.DefaultKubeBinaryVersion, "", ""), utilfeature.DefaultMutableFeatureGate))

	serverRun := genericoptions.NewServerRunOptionsForComponent(compatibility.DefaultKubeComponent, globals)
	// What is larger etcd refuses, with an answer that reads like a fault of the server.
	serverRun.MaxRequestBodyBytes = embed.DefaultMaxRequestBytes
	// The library's default of 0 waits at shutdown until clients give up their watches, which they do not do.
	serverRun.ShutdownWatchTerminationGracePeriod = 2 * time.Second

	return &Options{
		Recommended:      recommended,
		ServerRun:        serverRun,
		Logs:             logsapi.NewLoggingConfiguration(),
		ComponentGlobals: globals,
		EmbeddedEtcd:     embedded.Config{DataDir: "/var/lib/sandbox-apiserver/etcd", QuotaBackendBytes: 8 << 30},
		ServingCert:      ServingCertOptions{ServiceName: "sandbox-apiserver"},
		StorageFence:     StorageFenceOptions{Enabled: true, ConfigMapName: fence.ConfigMapName},
		Extra:            sandboxapiserver.ExtraConfig{StreamDrain: 30 * time.Second},
	}
}

// Flags returns the flags, by topic.
func (o *Options) Flags() cliflag.NamedFlagSets {
	sets := cliflag.NamedFlagSets{}
	o.Recommended.Etcd.AddFlags(sets.FlagSet("etcd"))
	o.Recommended.SecureServing.AddFlags(sets.FlagSet("secure serving"))
	o.Recommended.Authentication.AddFlags(sets.FlagSet("authentication"))
	o.Recommended.Authorization.AddFlags(sets.FlagSet("authorization"))
	o.Recommended.Audit.AddFlags(sets.FlagSet("auditing"))
	o.Recommended.Features.AddFlags(sets.FlagSet("features"))
	o.Recommended.CoreAPI.AddFlags(sets.FlagSet("kube-apiserver"))
	o.Recommended.Admission.AddFlags(sets.FlagSet("admission"))
	o.Recommended.EgressSelector.AddFlags(sets.FlagSet("egress selector"))
	o.Recommended.Traces.AddFlags(sets.FlagSet("traces"))
	o.ServerRun.AddUniversalFlags(sets.FlagSet("generic"))
	logsapi.AddFlags(o.Logs, sets.FlagSet("logs"))
	sets.FlagSet("kube-apiserver").StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace in which the server keeps objects of its own. Empty means that of the Pod.")
	o.ServingCert.AddFlags(sets.FlagSet("serving certificate"))
	o.StorageFence.AddFlags(sets.FlagSet("storage fence"))

	etcd := sets.FlagSet("embedded etcd")
	etcd.StringVar(&o.EmbeddedEtcd.DataDir, "etcd-data-dir", o.EmbeddedEtcd.DataDir,
		"Directory of the etcd inside this process, which is used if --etcd-servers is empty. It must outlive the process.")
	etcd.Int64Var(&o.EmbeddedEtcd.QuotaBackendBytes, "etcd-quota-backend-bytes", o.EmbeddedEtcd.QuotaBackendBytes,
		"Size in bytes of the database of the etcd inside this process at which writes are refused.")

	streams := sets.FlagSet("streams")
	streams.IntVar(&o.Extra.MaxStreams, "max-streams", o.Extra.MaxStreams,
		"Number of streams (exec and its like) that may be open at a time; more are refused with 429. 0 means no bound.")
	streams.DurationVar(&o.Extra.StreamDrain, "stream-drain", o.Extra.StreamDrain,
		"How long open streams may go on after the server was told to stop.")

	sets.FlagSet("claims").StringVar(&o.Extra.AllowedLabelDomainsFile, "allowed-label-domains-file", o.Extra.AllowedLabelDomainsFile,
		"File with the DNS domains that the labels in spec.additionalPodMetadata of a SandboxClaim may be prefixed with, subdomains included, "+
			"separated by commas or newlines. It may be changed at any time. If it is missing or empty, sandbox.users.io is allowed.")
	return sets
}

// FeatureGate returns the gates that --feature-gates sets.
func (o *Options) FeatureGate() featuregate.FeatureGate {
	return o.ComponentGlobals.FeatureGateFor(compatibility.DefaultKubeComponent)
}

// UsesEmbeddedEtcd reports whether etcd is to run inside the process.
func (o *Options) UsesEmbeddedEtcd() bool {
	return len(o.Recommended.Etcd.StorageConfig.Transport.ServerList) == 0
}

// Validate returns all that is wrong with the options.
func (o *Options) Validate() error {
	errs := o.ServerRun.Validate()
	errs = append(errs, o.ComponentGlobals.Validate()...)
	errs = append(errs, o.ServingCert.Validate(o.Recommended.SecureServing.ServerCert.CertKey)...)
	if o.UsesEmbeddedEtcd() {
		if o.EmbeddedEtcd.DataDir == "" {
			errs = append(errs, errors.New("--etcd-data-dir or --etcd-servers must be specified"))
		}
		if o.EmbeddedEtcd.QuotaBackendBytes < 0 {
			errs = append(errs, fmt.Errorf("--etcd-quota-backend-bytes %d must not be negative", o.EmbeddedEtcd.QuotaBackendBytes))
		}
		if len(o.Recommended.Etcd.EtcdServersOverrides) != 0 {
			errs = append(errs, errors.New("--etcd-servers-overrides needs --etcd-servers"))
		}
	} else {
		errs = append(errs, o.Recommended.Etcd.Validate()...)
	}
	for _, part := range []interface{ Validate() []error }{
		o.Recommended.SecureServing, o.Recommended.Authentication, o.Recommended.Authorization, o.Recommended.Audit, o.Recommended.Features,
		o.Recommended.CoreAPI, o.Recommended.Admission, o.Recommended.EgressSelector, o.Recommended.Traces,
	} {
		errs = append(errs, part.Validate()...)
	}
	if o.StorageFence.Enabled && o.StorageFence.ConfigMapName == "" {
		errs = append(errs, errors.New("--storage-fence needs --storage-fence-configmap"))
	}
	if o.Extra.MaxStreams < 0 {
		errs = append(errs, fmt.Errorf("--max-streams %d must not be negative", o.Extra.MaxStreams))
	}
	if o.Extra.StreamDrain < 0 {
		errs = append(errs, fmt.Errorf("--stream-drain %v must not be negative", o.Extra.StreamDrain))
	}
	return errors.Join(errs...)
}

// Companions are what must run beside the server, or come after it has started. Each may be nil.
type Companions struct {
	// ClientCA is the authority of clients' certificates, if that comes from the main cluster.
	ClientCA dynamiccertificates.CAContentProvider
	// Certificates is the keeper of the serving certificate, if that is ours to keep.
	Certificates *servingcert.Manager
	// Fence fences off a storage that lost data: see fence.Fence.Run.
	Fence func(context.Context) error
}

// ApplyTo fills the configuration. It returns what belongs to the server besides.
func (o *Options) ApplyTo(ctx context.Context, config *genericapiserver.RecommendedConfig, serialization sandboxapiserver.Serialization) (*Companions, error) {
	if err := o.ServerRun.ApplyTo(&config.Config); err != nil {
		return nil, err
	}
	certificates, err := o.applyServingCert(ctx)
	if err != nil {
		return nil, err
	}
	// The recommended options would store with a factory that ignores the media type and the overrides.
	recommended := *o.Recommended
	recommended.Etcd = nil
	authentication := *o.Recommended.Authentication
	recommended.Authentication = &authentication
	clientCA, err := followClientCA(ctx, &authentication)
	if err != nil {
		return nil, err
	}
	if err := recommended.ApplyTo(config); err != nil {
		return nil, err
	}
	// client-go's own limit of 5 requests a second would be one for streams too, each of which begins with a look at its Pod.
	config.ClientConfig.QPS = -1
	companions := &Companions{Certificates: certificates, ClientCA: clientCA}
	if o.StorageFence.Enabled {
		namespace, err := ownNamespace(o.Namespace)
		if err != nil {
			return nil, err
		}
		etcds, err := factory.Etcds(o.Recommended.Etcd)
		if err != nil {
			return nil, err
		}
		companions.Fence, err = o.StorageFence.ApplyTo(config, etcds, namespace)
		if err != nil {
			return nil, err
		}
	}
	storage := o.Recommended.Etcd.StorageConfig
	storage.StorageObjectCountTracker = config.StorageObjectCountTracker
	etcd := *o.Recommended.Etcd
	etcd.StorageConfig = storage
	storageFactory, err := factory.New(&etcd, serialization.Scheme, serialization.Codecs)
	if err != nil {
		return nil, err
	}
	return companions, etcd.ApplyWithStorageFactoryTo(storageFactory, &config.Config)
}

func (o *Options) applyServingCert(ctx context.Context) (*servingcert.Manager, error) {
	if !o.ServingCert.Enabled() {
		return nil, o.Recommended.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil)
	}
	client, err := clientcmd.BuildConfigFromFlags("", o.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, err
	}
	namespace, err := ownNamespace(o.Namespace)
	if err != nil {
		return nil, err
	}
	certificates, err := o.ServingCert.NewManager(ctx, client, namespace)
	if err != nil {
		return nil, err
	}
	o.Recommended.SecureServing.ServerCert.GeneratedCert = certificates
	return certificates, nil
}

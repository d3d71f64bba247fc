// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"slices"
	"strings"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// Etcd is an etcd that the server stores in.
type Etcd struct {
	// Name says which resources are stored in it, and nothing of where it is. It consists of letters, digits, '-', '_' and '.'. That of the
	// etcd for all other resources is empty.
	Name string
	// Transport says how it is reached.
	Transport storagebackend.TransportConfig
}

// Etcds returns every etcd that the options name, that for most resources first. It fails if the servers that they name for single
// resources cannot be understood.
func Etcds(options *genericoptions.EtcdOptions) ([]Etcd, error) {
	overrides, err := genericoptions.ParseEtcdServersOverrides(options.EtcdServersOverrides)
	if err != nil {
		return nil, err
	}
	main := options.StorageConfig.Transport
	etcds := []Etcd{{Transport: main}}
	resources := map[string][]string{}
	for _, override := range overrides {
		servers := serverSet(override.Servers)
		if servers == serverSet(main.ServerList) {
			continue
		}
		if resources[servers] == nil {
			other := main
			other.ServerList = override.Servers
			etcds = append(etcds, Etcd{Transport: other})
		}
		resource := strings.ReplaceAll(override.GroupResource.String(), "*", "all")
		resources[servers] = append(resources[servers], resource)
	}
	for i := range etcds[1:] {
		etcd := &etcds[1+i]
		names := resources[serverSet(etcd.Transport.ServerList)]
		slices.Sort(names)
		etcd.Name = strings.Join(slices.Compact(names), "_")
	}
	return etcds, nil
}

// serverSet returns a text that is the same for the same servers in another order.
func serverSet(servers []string) string {
	return strings.Join(slices.Sorted(slices.Values(servers)), ";")
}

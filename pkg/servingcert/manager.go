// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package servingcert gives the server a serving certificate that the aggregation layer trusts, where nobody else provides one: it
// keeps a certificate in a Secret that all replicas share, renews it in time, and writes the authorities that vouch for it into
// the caBundle of our APIServices.
package servingcert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	apiregistrationv1client "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"
	"k8s.io/utils/clock"
)

const (
	// caKey is the key in the Secret under which the bundle lies, next to the standard keys of a TLS Secret.
	caKey = "ca.crt"
	// resyncPeriod is how long a lost caBundle, or a certificate renewed by another replica, can go unnoticed.
	resyncPeriod = 10 * time.Second
)

// Config names what a Manager keeps in order.
type Config struct {
	// Secret holds the certificate.
	Secret types.NamespacedName
	// DNSNames are the names that the certificate is for.
	DNSNames []string
	// APIServices are the names of those whose caBundle is kept. One that does not exist yet is waited for.
	APIServices []string
}

// Manager provides the serving certificate.
type Manager struct {
	config      Config
	secrets     corev1client.SecretInterface
	apiServices apiregistrationv1client.APIServiceInterface
	clock       clock.PassiveClock
	current     atomic.Pointer[pair]
	listeners   []dynamiccertificates.Listener
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Manager{}
	_ dynamiccertificates.Notifier               = &Manager{}
)

// New returns a Manager that has a certificate to serve. It fails if the Secret can be neither read nor made.
func New(ctx context.Context, config Config, secrets corev1client.SecretsGetter, apiServices apiregistrationv1client.APIServicesGetter, clock clock.PassiveClock) (*Manager, error) {
	m := &Manager{
		config:      config,
		secrets:     secrets.Secrets(config.Secret.Namespace),
		apiServices: apiServices.APIServices(),
		clock:       clock,
	}
	p, err := m.ensureSecret(ctx)
	if err != nil {
		return nil, err
	}
	m.current.Store(&p)
	return m, nil
}

// Name implements dynamiccertificates.CertKeyContentProvider.
func (m *Manager) Name() string { return "secret " + m.config.Secret.String() }

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (m *Manager) CurrentCertKeyContent() (cert, key []byte) {
	p := m.current.Load()
	return p.cert, p.key
}

// AddListener implements dynamiccertificates.Notifier. It must be called before Run.
func (m *Manager) AddListener(listener dynamiccertificates.Listener) {
	m.listeners = append(m.listeners, listener)
}

// Run keeps Secret, certificate and APIServices in order until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := m.sync(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Keeping the serving certificate in order", "secret", m.config.Secret)
		}
	}, resyncPeriod)
}

// sync trusts a new certificate everywhere before it serves it.
func (m *Manager) sync(ctx context.Context) error {
	p, err := m.ensureSecret(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range m.config.APIServices {
		errs = append(errs, m.ensureCABundle(ctx, name, p.bundle))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if bytes.Equal(p.cert, m.current.Load().cert) {
		return nil
	}
	m.current.Store(&p)
	for _, listener := range m.listeners {
		listener.Enqueue()
	}
	return nil
}

// ensureSecret returns the usable pair in the Secret, after making or renewing it if need be. Of several replicas that do so at once
// the first wins, and the others take what it wrote.
func (m *Manager) ensureSecret(ctx context.Context) (pair, error) {
	for {
		secret, err := m.secrets.Get(ctx, m.config.Secret.Name, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return pair{}, fmt.Errorf("reading secret %s: %w", m.config.Secret, err)
		}
		if missing {
			secret = &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: m.config.Secret.Namespace, Name: m.config.Secret.Name},
				Type:       corev1.SecretTypeTLS,
			}
		}
		stored := pair{bundle: secret.Data[caKey], cert: secret.Data[corev1.TLSCertKey], key: secret.Data[corev1.TLSPrivateKeyKey]}
		if stored.usable(m.clock.Now(), m.config.DNSNames) {
			return stored, nil
		}
		renewed, err := issue(m.clock.Now(), m.config.DNSNames, stored.bundle)
		if err != nil {
			return pair{}, err
		}
		secret.Data = map[string][]byte{caKey: renewed.bundle, corev1.TLSCertKey: renewed.cert, corev1.TLSPrivateKeyKey: renewed.key}
		if missing {
			_, err = m.secrets.Create(ctx, secret, metav1.CreateOptions{})
		} else {
			_, err = m.secrets.Update(ctx, secret, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			klog.FromContext(ctx).Info("Issued a serving certificate", "secret", m.config.Secret, "names", m.config.DNSNames)
			return renewed, nil
		case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
			continue
		default:
			return pair{}, fmt.Errorf("writing secret %s: %w", m.config.Secret, err)
		}
	}
}

func (m *Manager) ensureCABundle(ctx context.Context, name string, bundle []byte) error {
	apiService, err := m.apiServices.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading APIService %s: %w", name, err)
	}
	if bytes.Equal(apiService.Spec.CABundle, bundle) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": apiService.UID, "resourceVersion": apiService.ResourceVersion},
		"spec":     map[string]any{"caBundle": bundle},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch of APIService %s: %w", name, err)
	}
	if _, err := m.apiServices.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "sandbox-apiserver"}); err != nil {
		return fmt.Errorf("writing the caBundle of APIService %s: %w", name, err)
	}
	klog.FromContext(ctx).Info("Wrote the caBundle", "apiService", name)
	return nil
}

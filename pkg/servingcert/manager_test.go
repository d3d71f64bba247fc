// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregatorfake "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
	clocktesting "k8s.io/utils/clock/testing"
)

const apiServiceName = "v1beta1.agents.x-k8s.io"

// env holds the cluster's side of a Manager. The clientsets are fakes: the tests inject lost races and failures, and look at single
// writes.
type env struct {
	kube       *kubefake.Clientset
	aggregator *aggregatorfake.Clientset
	clock      *clocktesting.FakePassiveClock
}

func newEnv(objects ...runtime.Object) *env {
	return &env{
		kube:       kubefake.NewClientset(objects...),
		aggregator: aggregatorfake.NewClientset(&apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: apiServiceName}}),
		clock:      clocktesting.NewFakePassiveClock(now),
	}
}

func (e *env) manager(t *testing.T) *Manager {
	t.Helper()
	m, err := e.newManager(t)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (e *env) newManager(t *testing.T) (*Manager, error) {
	return New(t.Context(), Config{
		Secret:      types.NamespacedName{Namespace: "namespace", Name: "cert"},
		DNSNames:    names,
		APIServices: []string{apiServiceName, "v1.absent.example.com"},
	}, e.kube.CoreV1(), e.aggregator.ApiregistrationV1(), e.clock)
}

func (e *env) stored(t *testing.T) pair {
	t.Helper()
	secret, err := e.kube.CoreV1().Secrets("namespace").Get(t.Context(), "cert", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pair{bundle: secret.Data["ca.crt"], cert: secret.Data["tls.crt"], key: secret.Data["tls.key"]}
}

func (e *env) caBundle(t *testing.T) string {
	t.Helper()
	apiService, err := e.aggregator.ApiregistrationV1().APIServices().Get(t.Context(), apiServiceName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(apiService.Spec.CABundle)
}

func secretWith(p pair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "namespace", Name: "cert"},
		Data:       map[string][]byte{"ca.crt": p.bundle, "tls.crt": p.cert, "tls.key": p.key},
	}
}

func served(m *Manager) pair {
	cert, key := m.CurrentCertKeyContent()
	return pair{bundle: m.current.Load().bundle, cert: cert, key: key}
}

var comparePairs = cmp.AllowUnexported(pair{})

type countingListener int

func (l *countingListener) Enqueue() { *l++ }

func TestFirstStartIssuesAndPublishes(t *testing.T) {
	e := newEnv()
	m := e.manager(t)
	if diff := cmp.Diff(e.stored(t), served(m), comparePairs); diff != "" {
		t.Errorf("what is served is not what is stored (-stored +served):\n%s", diff)
	}
	if err := m.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(e.stored(t).bundle), e.caBundle(t)); diff != "" {
		t.Errorf("caBundle (-stored +published):\n%s", diff)
	}
}

func TestRestartKeepsTheCertificate(t *testing.T) {
	existing := mustIssue(t, now, names, nil)
	e := newEnv(secretWith(existing))
	if diff := cmp.Diff(existing, served(e.manager(t)), comparePairs); diff != "" {
		t.Errorf("served (-stored before +served):\n%s", diff)
	}
}

func TestNothingToDoWritesNothing(t *testing.T) {
	e := newEnv()
	m := e.manager(t)
	if err := m.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.kube.ClearActions()
	e.aggregator.ClearActions()
	if err := m.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, action := range append(e.kube.Actions(), e.aggregator.Actions()...) {
		if action.GetVerb() != "get" {
			t.Errorf("a sync with nothing to do did %s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
}

func TestLostCABundleIsWrittenAgain(t *testing.T) {
	e := newEnv()
	m := e.manager(t)
	if _, err := e.aggregator.ApiregistrationV1().APIServices().Update(t.Context(),
		&apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: apiServiceName}}, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := m.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.caBundle(t) == "" {
		t.Error("the caBundle is still empty")
	}
}

func TestRenewalIsServedAndAnnounced(t *testing.T) {
	e := newEnv()
	m := e.manager(t)
	var announced countingListener
	m.AddListener(&announced)
	before := served(m)
	e.clock.SetTime(now.Add(lifetime * 2 / 3))
	if err := m.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := served(m)
	if string(before.cert) == string(after.cert) || !after.usable(e.clock.Now(), names) {
		t.Error("the old certificate is still served")
	}
	if announced != 1 {
		t.Errorf("announced %d times, want once", announced)
	}
}

func TestNewCertificateIsNotServedBeforeItIsTrusted(t *testing.T) {
	e := newEnv()
	m := e.manager(t)
	before := served(m)
	e.aggregator.PrependReactor("patch", "apiservices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("injected")
	})
	e.clock.SetTime(now.Add(lifetime * 2 / 3))
	if err := m.sync(t.Context()); err == nil {
		t.Error("sync succeeded, want the injected error")
	}
	if diff := cmp.Diff(before, served(m), comparePairs); diff != "" {
		t.Errorf("served (-before +after):\n%s", diff)
	}
}

func TestLosingTheRaceToCreateTakesTheWinners(t *testing.T) {
	winner := mustIssue(t, now, names, nil)
	e := newEnv()
	e.kube.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if err := e.kube.Tracker().Add(secretWith(winner)); err != nil {
			t.Error(err)
		}
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, "cert")
	})
	if diff := cmp.Diff(winner, served(e.manager(t)), comparePairs); diff != "" {
		t.Errorf("served (-winner +got):\n%s", diff)
	}
}

func TestUnreadableSecretIsAnError(t *testing.T) {
	e := newEnv()
	e.kube.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("injected")
	})
	if _, err := e.newManager(t); err == nil {
		t.Error("started without a certificate, want the injected error")
	}
}

// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// poolPlan is a pool, and its template, which has the same name.
type poolPlan struct {
	namespace, name string
	replicas        int32
	recreate        bool
}

// pools have the same names for two tenants.
var pools = []*poolPlan{
	{"tenant-a", "large", 50, false},
	{"tenant-a", "fresh", 20, true},
	{"tenant-a", "small", 4, false},
	{"tenant-b", "large", 50, false},
	{"tenant-b", "fresh", 20, true},
	{"tenant-b", "small", 4, false},
}

func (p *poolPlan) template() *extensionsv1beta1.SandboxTemplate {
	return framework.NewTemplate(p.name, func(template *extensionsv1beta1.SandboxTemplate) {
		template.Spec.EnvVarsInjectionPolicy = extensionsv1beta1.EnvVarsInjectionPolicyAllowed
	})
}

func (p *poolPlan) pool() *extensionsv1beta1.SandboxWarmPool {
	pool := framework.NewPool(p.name, p.name, p.replicas)
	if p.recreate {
		framework.Recreate(pool)
	}
	return pool
}

// operator owns the pools and templates, and changes them.
type operator struct {
	*load
	random *rand.Rand
	// edits counts the changes of templates.
	edits int
}

// create creates everything.
func (o *operator) create(t framework.T, kube kubernetes.Interface) {
	t.Helper()
	at := o.servers[0]
	for _, plan := range pools {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plan.namespace}}
		_, err := kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("creating namespace %s: %v", plan.namespace, err)
		}
		if _, err := at.templates(plan.namespace).Create(t.Context(), plan.template(), metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating template %s/%s: %v", plan.namespace, plan.name, err)
		}
		if _, err := at.pools(plan.namespace).Create(t.Context(), plan.pool(), metav1.CreateOptions{}); err != nil {
			t.Fatalf("creating pool %s/%s: %v", plan.namespace, plan.name, err)
		}
	}
}

// run changes something every now and then until ctx ends. What fails is not done again: something else comes soon.
func (o *operator) run(ctx context.Context) {
	for ctx.Err() == nil {
		plan := pools[o.random.IntN(len(pools))]
		o.hot.Store(pools[o.random.IntN(len(pools))])
		at := o.servers[o.random.IntN(len(o.servers))]
		switch o.random.IntN(12) {
		case 0, 1, 2:
			_ = o.scale(ctx, at, plan, o.random.Int32N(plan.replicas+1))
		case 3:
			_ = o.scale(ctx, at, plan, 0)
		case 4, 5:
			_ = o.scale(ctx, at, plan, plan.replicas)
		case 6, 7:
			_ = o.edit(ctx, at, plan)
		case 8:
			_ = o.replace(ctx, at, plan)
		}
		pause(ctx, time.Duration(500+o.random.IntN(1000))*time.Millisecond)
	}
}

func (o *operator) scale(ctx context.Context, at *server, plan *poolPlan, replicas int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := at.pools(plan.namespace).Patch(ctx, plan.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// edit changes a template: half of the time in a way that makes members stale.
func (o *operator) edit(ctx context.Context, at *server, plan *poolPlan) error {
	o.edits++
	patch := fmt.Appendf(nil, `{"spec":{"podTemplate":{"metadata":{"labels":{"edit":"%d"}}}}}`, o.edits)
	if o.random.IntN(2) == 0 {
		patch = fmt.Appendf(nil, `{"spec":{"podTemplate":{"spec":{"hostname":"edit-%d"}}}}`, o.edits)
	}
	_, err := at.templates(plan.namespace).Patch(ctx, plan.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// replace deletes a pool and creates another of the same name.
func (o *operator) replace(ctx context.Context, at *server, plan *poolPlan) error {
	if err := at.pools(plan.namespace).Delete(ctx, plan.name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	pause(ctx, time.Duration(o.random.IntN(2000))*time.Millisecond)
	return o.restore(ctx, at, plan)
}

// restore makes a pool what it was in the beginning, wherever it is.
func (o *operator) restore(ctx context.Context, at *server, plan *poolPlan) error {
	_, err := at.pools(plan.namespace).Create(ctx, plan.pool(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return o.scale(ctx, at, plan, plan.replicas)
	}
	return err
}

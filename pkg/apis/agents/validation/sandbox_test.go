// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
)

type tweak = func(*agents.Sandbox)

func validSandbox(tweaks ...tweak) *agents.Sandbox {
	sandbox := &agents.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox", Namespace: "default", ResourceVersion: "1"},
		Spec: agents.SandboxSpec{
			SandboxBlueprint: agents.SandboxBlueprint{
				PodTemplate: agents.PodTemplate{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}}},
			},
			OperatingMode:  agents.SandboxOperatingModeRunning,
			ShutdownPolicy: ptr.To(agents.ShutdownPolicyRetain),
		},
	}
	for _, tweak := range tweaks {
		tweak(sandbox)
	}
	return sandbox
}

func name(name string) tweak {
	return func(s *agents.Sandbox) { s.Name = name }
}

func label(s *agents.Sandbox) { s.Labels = map[string]string{"a": "b"} }

func service(service bool) tweak {
	return func(s *agents.Sandbox) { s.Spec.Service = &service }
}

func mode(mode agents.SandboxOperatingMode) tweak {
	return func(s *agents.Sandbox) { s.Spec.OperatingMode = mode }
}

func shutdownPolicy(policy agents.ShutdownPolicy) tweak {
	return func(s *agents.Sandbox) { s.Spec.ShutdownPolicy = &policy }
}

// lateInUTC is a time that is written with four digits for the year and read with five.
func lateInUTC() *metav1.Time {
	return &metav1.Time{Time: time.Date(9999, 12, 31, 23, 30, 0, 0, time.FixedZone("", -3600))}
}

func shutdownTime(time *metav1.Time) tweak {
	return func(s *agents.Sandbox) { s.Spec.ShutdownTime = time }
}

func fieldOwner(at *metav1.Time) tweak {
	return func(s *agents.Sandbox) {
		s.ManagedFields = append(s.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: "somebody", Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", Time: at,
		})
	}
}

func podLabels(labels map[string]string) tweak {
	return func(s *agents.Sandbox) { s.Spec.PodTemplate.Metadata.Labels = labels }
}

func podAnnotations(annotations map[string]string) tweak {
	return func(s *agents.Sandbox) { s.Spec.PodTemplate.Metadata.Annotations = annotations }
}

func podSpec(change func(*corev1.PodSpec)) tweak {
	return func(s *agents.Sandbox) { change(&s.Spec.PodTemplate.Spec) }
}

func containers(names ...string) tweak {
	return podSpec(func(spec *corev1.PodSpec) { spec.Containers = containersNamed(names...) })
}

func initContainers(names ...string) tweak {
	return podSpec(func(spec *corev1.PodSpec) { spec.InitContainers = containersNamed(names...) })
}

func containersNamed(names ...string) []corev1.Container {
	var list []corev1.Container
	for _, name := range names {
		list = append(list, corev1.Container{Name: name})
	}
	return list
}

func volumes(names ...string) tweak {
	return podSpec(func(spec *corev1.PodSpec) {
		for _, name := range names {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name})
		}
	})
}

func env(env ...corev1.EnvVar) tweak {
	return podSpec(func(spec *corev1.PodSpec) { spec.Containers[0].Env = env })
}

func probedPort(port intstr.IntOrString) tweak {
	return podSpec(func(spec *corev1.PodSpec) {
		spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}}
	})
}

// claim adds a template of a claim that can be made, changed by the given functions.
func claim(name string, changes ...func(*agents.PersistentVolumeClaimTemplate)) tweak {
	return func(s *agents.Sandbox) {
		template := agents.PersistentVolumeClaimTemplate{
			Metadata: agents.EmbeddedObjectMetadata{Name: name},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: storage("1Gi")},
			},
		}
		for _, change := range changes {
			change(&template)
		}
		s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, template)
	}
}

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func withSpec(change func(*corev1.PersistentVolumeClaimSpec)) tweak {
	return claim("data", func(template *agents.PersistentVolumeClaimTemplate) { change(&template.Spec) })
}

func requests(requests corev1.ResourceList) tweak {
	return withSpec(func(spec *corev1.PersistentVolumeClaimSpec) { spec.Resources.Requests = requests })
}

func accessModes(modes ...corev1.PersistentVolumeAccessMode) tweak {
	return withSpec(func(spec *corev1.PersistentVolumeClaimSpec) { spec.AccessModes = modes })
}

func storageClass(name string) tweak {
	return withSpec(func(spec *corev1.PersistentVolumeClaimSpec) { spec.StorageClassName = &name })
}

func volumeMode(mode corev1.PersistentVolumeMode) tweak {
	return withSpec(func(spec *corev1.PersistentVolumeClaimSpec) { spec.VolumeMode = &mode })
}

func volumeSelector(labels map[string]string) tweak {
	return withSpec(func(spec *corev1.PersistentVolumeClaimSpec) {
		spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	})
}

func claimLabels(labels map[string]string) tweak {
	return claim("data", func(template *agents.PersistentVolumeClaimTemplate) { template.Metadata.Labels = labels })
}

func claimAnnotations(annotations map[string]string) tweak {
	return claim("data", func(template *agents.PersistentVolumeClaimTemplate) { template.Metadata.Annotations = annotations })
}

// problems strips errors to what clients may rely on: the kind of error and the path.
func problems(errs field.ErrorList) []string {
	var got []string
	for _, err := range errs {
		got = append(got, string(err.Type)+" "+err.Field)
	}
	return got
}

func TestValidateSandbox(t *testing.T) {
	type pairs = map[string]string
	literal := corev1.EnvVar{Name: "KEY", Value: "value"}
	fromField := corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	annotationsOf := func(size int) pairs { return pairs{"a": strings.Repeat("x", size-1)} }
	const (
		template = "spec.podTemplate."
		first    = "spec.volumeClaimTemplates[0]."
	)
	for _, test := range []struct {
		name    string
		sandbox *agents.Sandbox
		want    []string
	}{
		{"minimal", validSandbox(), nil},
		{"suspended from the start", validSandbox(mode(agents.SandboxOperatingModeSuspended)), nil},
		{"name of a subdomain", validSandbox(name("a.b")), nil},
		{"longest name", validSandbox(name(strings.Repeat("a", 253))), nil},
		{"too long a name", validSandbox(name(strings.Repeat("a", 254))), []string{"FieldValueInvalid metadata.name"}},
		{"upper case in the name", validSandbox(name("A")), []string{"FieldValueInvalid metadata.name"}},
		{"underscore in the name", validSandbox(name("a_b")), []string{"FieldValueInvalid metadata.name"}},
		{"dash before the name", validSandbox(name("-a")), []string{"FieldValueInvalid metadata.name"}},
		{"dash after the name", validSandbox(name("a-")), []string{"FieldValueInvalid metadata.name"}},
		{"no name", validSandbox(name("")), []string{"FieldValueRequired metadata.name"}},

		{"no containers", validSandbox(containers()), []string{"FieldValueRequired " + template + "spec.containers"}},
		{"container without a name", validSandbox(containers("")), []string{"FieldValueRequired " + template + "spec.containers[0].name"}},
		{"two containers", validSandbox(containers("main", "other")), nil},
		{"two containers of one name", validSandbox(containers("main", "main")), []string{"FieldValueDuplicate " + template + "spec.containers[1].name"}},
		{"two init containers", validSandbox(initContainers("init", "other")), nil},
		{"two init containers of one name", validSandbox(initContainers("init", "init")),
			[]string{"FieldValueDuplicate " + template + "spec.initContainers[1].name"}},
		{"two volumes", validSandbox(volumes("a", "b")), nil},
		{"two volumes of one name", validSandbox(volumes("a", "a")), []string{"FieldValueDuplicate " + template + "spec.volumes[1].name"}},
		{"volume that a claim replaces", validSandbox(volumes("data"), claim("data")), nil},
		{"variable with a value", validSandbox(env(literal)), nil},
		{"variable with a source", validSandbox(env(corev1.EnvVar{Name: "KEY", ValueFrom: &fromField})), nil},
		{"variable with both", validSandbox(env(literal, corev1.EnvVar{Name: "BOTH", Value: "value", ValueFrom: &fromField})),
			[]string{"FieldValueInvalid " + template + "spec.containers[0].env[1].valueFrom"}},
		{"variable twice", validSandbox(env(literal, literal)), []string{"FieldValueDuplicate " + template + "spec.containers[0].env[1].name"}},
		{"port by number", validSandbox(probedPort(intstr.FromInt32(80))), nil},
		{"port by name", validSandbox(probedPort(intstr.FromString("http"))), nil},
		{"port by neither", validSandbox(probedPort(intstr.IntOrString{Type: 2})), []string{"FieldValueInvalid " + template + "spec"}},

		{"Pod labels", validSandbox(podLabels(pairs{"example.com/app": "web", "empty": ""})), nil},
		{"key that no label can have", validSandbox(podLabels(pairs{"not a key": "a"})), []string{"FieldValueInvalid " + template + "metadata.labels"}},
		{"value that no label can have", validSandbox(podLabels(pairs{"app": "not a value"})), []string{"FieldValueInvalid " + template + "metadata.labels"}},
		{"label under a reserved key, which is ignored", validSandbox(podLabels(pairs{"agents.x-k8s.io/a": "not a value", "extensions.agents.x-k8s.io/not a key": "a"})), nil},
		{"label under a key that only looks reserved", validSandbox(podLabels(pairs{"api.agents.x-k8s.io/a": "not a value"})),
			[]string{"FieldValueInvalid " + template + "metadata.labels"}},
		{"Pod annotations", validSandbox(podAnnotations(pairs{"Example.com/App": "any value at all"})), nil},
		{"key that no annotation can have", validSandbox(podAnnotations(pairs{"not a key": "a"})), []string{"FieldValueInvalid " + template + "metadata.annotations"}},
		{"annotations of the greatest size", validSandbox(podAnnotations(annotationsOf(256 << 10))), nil},
		{"annotations beyond it", validSandbox(podAnnotations(annotationsOf(256<<10 + 1))), []string{"FieldValueTooLong " + template + "metadata.annotations"}},
		{"annotation under a reserved key, which is ignored", validSandbox(podAnnotations(pairs{"agents.x-k8s.io/not a key": "", "opentelemetry.io/trace-context": strings.Repeat("x", 256<<10)})), nil},

		{"unknown operating mode", validSandbox(mode("suspended")), []string{"FieldValueNotSupported spec.operatingMode"}},
		{"unknown shutdown policy", validSandbox(shutdownPolicy("delete")), []string{"FieldValueNotSupported spec.shutdownPolicy"}},
		{"shutdown policy of a claim", validSandbox(shutdownPolicy("DeleteForeground")), []string{"FieldValueNotSupported spec.shutdownPolicy"}},
		{"last shutdown time", validSandbox(shutdownTime(&metav1.Time{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)})), nil},
		{"shutdown time beyond it", validSandbox(shutdownTime(lateInUTC())), []string{"FieldValueInvalid spec.shutdownTime"}},
		{"shutdown time long past", validSandbox(shutdownTime(&metav1.Time{Time: time.Unix(0, 0)})), nil},
		{"shutdown time before the first year", validSandbox(shutdownTime(&metav1.Time{Time: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)})), []string{"FieldValueInvalid spec.shutdownTime"}},
		{"owner of fields", validSandbox(fieldOwner(&metav1.Time{Time: time.Unix(0, 0)}), fieldOwner(nil)), nil},
		{"owner of fields since a time that cannot be read", validSandbox(fieldOwner(nil), fieldOwner(lateInUTC())),
			[]string{"FieldValueInvalid metadata.managedFields[1].time"}},

		{"service", validSandbox(service(true)), nil},
		{"service of 63 characters", validSandbox(name(strings.Repeat("a", 63)), service(true)), nil},
		{"service of 64 characters", validSandbox(name(strings.Repeat("a", 64)), service(true)), []string{"FieldValueInvalid metadata.name"}},
		{"service with a dot", validSandbox(name("a.b"), service(true)), []string{"FieldValueInvalid metadata.name"}},
		{"long name and no service", validSandbox(name(strings.Repeat("a", 64)), service(false)), nil},

		{"claims", validSandbox(claim("data"), claim("cache")), nil},
		{"claim without a name", validSandbox(claim("")), []string{"FieldValueRequired " + first + "metadata.name"}},
		{"two claims of one name", validSandbox(claim("data"), claim("data")), []string{"FieldValueDuplicate spec.volumeClaimTemplates[1].metadata.name"}},
		{"claim whose name no volume can have", validSandbox(claim("a.b")), []string{"FieldValueInvalid " + first + "metadata.name"}},
		{"claim of 63 characters", validSandbox(claim(strings.Repeat("a", 63))), nil},
		{"claim of 64 characters", validSandbox(claim(strings.Repeat("a", 64))), []string{"FieldValueInvalid " + first + "metadata.name"}},
		{"claim whose name is too long with the sandbox's", validSandbox(name(strings.Repeat("a", 200)), claim(strings.Repeat("b", 63))),
			[]string{"FieldValueTooLong " + first + "metadata.name"}},
		{"claim labels", validSandbox(claimLabels(pairs{"app": "web"})), nil},
		{"claim with a key that no label can have", validSandbox(claimLabels(pairs{"not a key": "a"})), []string{"FieldValueInvalid " + first + "metadata.labels"}},
		{"claim with a value that no label can have", validSandbox(claimLabels(pairs{"app": "not a value"})), []string{"FieldValueInvalid " + first + "metadata.labels"}},
		{"claim with a label that is replaced", validSandbox(claimLabels(pairs{"agents.x-k8s.io/sandbox-name-hash": "not a value"})), nil},
		{"claim annotations", validSandbox(claimAnnotations(pairs{"app": "any value"})), nil},
		{"claim with a key that no annotation can have", validSandbox(claimAnnotations(pairs{"not a key": "a"})), []string{"FieldValueInvalid " + first + "metadata.annotations"}},
		{"claim with annotations beyond the greatest size", validSandbox(claimAnnotations(annotationsOf(256<<10 + 1))), []string{"FieldValueTooLong " + first + "metadata.annotations"}},
		{"claim with every access mode that goes together", validSandbox(accessModes(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany)), nil},
		{"claim for one Pod", validSandbox(accessModes(corev1.ReadWriteOncePod)), nil},
		{"claim without an access mode", validSandbox(accessModes()), []string{"FieldValueRequired " + first + "spec.accessModes"}},
		{"claim with an unknown access mode", validSandbox(accessModes(corev1.ReadWriteOnce, "RWO")), []string{"FieldValueNotSupported " + first + "spec.accessModes[1]"}},
		{"claim for one Pod and others", validSandbox(accessModes(corev1.ReadWriteOncePod, corev1.ReadWriteMany)), []string{"FieldValueForbidden " + first + "spec.accessModes"}},
		{"claim without a size", validSandbox(requests(nil)), []string{"FieldValueRequired " + first + "spec.resources.requests[storage]"}},
		{"claim of size zero", validSandbox(requests(storage("0"))), []string{"FieldValueInvalid " + first + "spec.resources.requests[storage]"}},
		{"claim of a negative size", validSandbox(requests(storage("-1Gi"))), []string{"FieldValueInvalid " + first + "spec.resources.requests[storage]"}},
		{"claim of a fraction of a byte", validSandbox(requests(storage("1m"))), nil},
		{"claim of the default class", validSandbox(storageClass("")), nil},
		{"claim of a class", validSandbox(storageClass("fast.example.com")), nil},
		{"claim whose class no object can have", validSandbox(storageClass("Fast_Disk")), []string{"FieldValueInvalid " + first + "spec.storageClassName"}},
		{"claim of a block device", validSandbox(volumeMode(corev1.PersistentVolumeBlock)), nil},
		{"claim of an unknown volume mode", validSandbox(volumeMode("block")), []string{"FieldValueNotSupported " + first + "spec.volumeMode"}},
		{"claim with a selector", validSandbox(volumeSelector(pairs{"tier": "fast"})), nil},
		{"claim with a selector that selects nothing", validSandbox(volumeSelector(pairs{"not a key": "fast"})), []string{"FieldValueInvalid " + first + "spec.selector.matchLabels"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandbox(test.sandbox))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateSandboxUpdate(t *testing.T) {
	long := name(strings.Repeat("a", 64))
	relabelled := func(template *agents.PersistentVolumeClaimTemplate) {
		template.Metadata.Labels = map[string]string{"a": "b"}
	}
	resized := func(size string) func(*agents.PersistentVolumeClaimTemplate) {
		return func(template *agents.PersistentVolumeClaimTemplate) { template.Spec.Resources.Requests = storage(size) }
	}
	image := podSpec(func(spec *corev1.PodSpec) { spec.Containers[0].Image = "other" })
	immutable := []string{"FieldValueInvalid spec.volumeClaimTemplates"}
	for _, test := range []struct {
		name     string
		old, new *agents.Sandbox
		want     []string
	}{
		{"no change", validSandbox(), validSandbox(), nil},
		{"pod template", validSandbox(), validSandbox(image), nil},
		{"claims added", validSandbox(), validSandbox(claim("data")), immutable},
		{"claims removed", validSandbox(claim("data")), validSandbox(), immutable},
		{"claims reordered", validSandbox(claim("a"), claim("b")), validSandbox(claim("b"), claim("a")), immutable},
		{"claim relabelled", validSandbox(claim("data")), validSandbox(claim("data", relabelled)), immutable},
		{"claim resized", validSandbox(claim("data")), validSandbox(claim("data", resized("2Gi"))), immutable},
		{"size of a claim in another spelling", validSandbox(claim("data")), validSandbox(claim("data", resized("1024Mi"))), nil},
		{"absent claims become empty", validSandbox(), validSandbox(func(s *agents.Sandbox) {
			s.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{}
		}), nil},
		{"service switched on under a long name", validSandbox(long), validSandbox(long, service(true)), []string{"FieldValueInvalid metadata.name"}},
		{"service switched off under a long name", validSandbox(long, service(true)), validSandbox(long, service(false)), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxUpdate(test.new, test.old))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnchangedFaultsBlockNothing stores what each rule forbids, as an older release may have, and then writes something else.
func TestUnchangedFaultsBlockNothing(t *testing.T) {
	for name, fault := range map[string]struct {
		tweak tweak
		// introduced is what becomes of the write that brings in the fault.
		introduced []string
	}{
		"no containers":               {containers(), []string{"FieldValueRequired spec.podTemplate.spec.containers"}},
		"containers of one name":      {containers("main", "main"), []string{"FieldValueDuplicate spec.podTemplate.spec.containers[1].name"}},
		"init containers of one name": {initContainers("init", "init"), []string{"FieldValueDuplicate spec.podTemplate.spec.initContainers[1].name"}},
		"volumes of one name":         {volumes("a", "a"), []string{"FieldValueDuplicate spec.podTemplate.spec.volumes[1].name"}},
		"variable with two sources": {env(corev1.EnvVar{Name: "A", Value: "a", ValueFrom: &corev1.EnvVarSource{}}),
			[]string{"FieldValueInvalid spec.podTemplate.spec.containers[0].env[0].valueFrom"}},
		"port without a form in JSON": {probedPort(intstr.IntOrString{Type: 2}), []string{"FieldValueInvalid spec.podTemplate.spec"}},
		"bad Pod label":               {podLabels(map[string]string{"a": "not a value"}), []string{"FieldValueInvalid spec.podTemplate.metadata.labels"}},
		"bad Pod annotation":          {podAnnotations(map[string]string{"not a key": ""}), []string{"FieldValueInvalid spec.podTemplate.metadata.annotations"}},
		"unknown mode":                {mode("Paused"), []string{"FieldValueNotSupported spec.operatingMode"}},
		"unknown shutdown policy":     {shutdownPolicy("Keep"), []string{"FieldValueNotSupported spec.shutdownPolicy"}},
		"unreadable shutdown time":    {shutdownTime(lateInUTC()), []string{"FieldValueInvalid spec.shutdownTime"}},
		"unreadable time of an owner": {fieldOwner(lateInUTC()), []string{"FieldValueInvalid metadata.managedFields[0].time"}},
		"claim without a name":        {claim(""), []string{"FieldValueInvalid spec.volumeClaimTemplates"}},
		"claim without a size":        {requests(nil), []string{"FieldValueInvalid spec.volumeClaimTemplates"}},
		"dotted name of a Service":    {service(true), []string{"FieldValueInvalid metadata.name"}},
	} {
		t.Run(name, func(t *testing.T) {
			dotted := func(s *agents.Sandbox) { s.Name = "a.b" }
			sound, stored := validSandbox(dotted), validSandbox(dotted, fault.tweak)
			if diff := cmp.Diff(fault.introduced, problems(ValidateSandboxUpdate(stored, sound))); diff != "" {
				t.Errorf("introducing it: errors (-want +got):\n%s", diff)
			}
			for change, tweak := range map[string]tweak{
				"metadata":      label,
				"finalizers":    func(s *agents.Sandbox) { s.Finalizers = []string{"example.com/a"} },
				"operatingMode": mode(agents.SandboxOperatingModeSuspended),
				"shutdownTime":  shutdownTime(&metav1.Time{Time: time.Unix(0, 0)}),
				"field owners": func(s *agents.Sandbox) {
					s.ManagedFields = slices.Insert(s.ManagedFields, 0, metav1.ManagedFieldsEntry{Manager: "me", Operation: "Update", FieldsType: "FieldsV1"})
				},
			} {
				if diff := cmp.Diff([]string(nil), problems(ValidateSandboxUpdate(validSandbox(dotted, fault.tweak, tweak), stored))); diff != "" {
					t.Errorf("then changing %s: errors (-want +got):\n%s", change, diff)
				}
			}
			if diff := cmp.Diff([]string(nil), problems(ValidateSandboxStatusUpdate(stored, stored))); diff != "" {
				t.Errorf("then writing the status: errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateSandboxStatusUpdate(t *testing.T) {
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "DependenciesReady", LastTransitionTime: metav1.Now()}
	conditions := func(conditions ...metav1.Condition) *agents.Sandbox {
		return validSandbox(func(s *agents.Sandbox) { s.Status.Conditions = conditions })
	}
	bad, late := condition, condition
	bad.Status, bad.Reason = "Maybe", "not a reason"
	late.LastTransitionTime = *lateInUTC()
	moved := conditions(bad)
	moved.Status.NodeName = "node"
	for _, test := range []struct {
		name     string
		old, new *agents.Sandbox
		want     []string
	}{
		{"empty", validSandbox(), validSandbox(), nil},
		{"condition", validSandbox(), conditions(condition), nil},
		{"malformed condition", validSandbox(), conditions(bad), []string{"FieldValueNotSupported status.conditions[0].status", "FieldValueInvalid status.conditions[0].reason"}},
		{"condition since a time that cannot be read", validSandbox(), conditions(late), []string{"FieldValueInvalid status.conditions[0].lastTransitionTime"}},
		{"node beside a condition that was malformed before", conditions(bad), moved, nil},
		{"malformed condition repaired", conditions(bad), conditions(condition), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, problems(ValidateSandboxStatusUpdate(test.new, test.old))); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

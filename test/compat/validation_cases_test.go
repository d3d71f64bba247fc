// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// earlier is why rules about what can never work hold here alone.
const earlier = "a schema cannot see it: there the Sandbox is accepted, and fails in the controller"

// TestV1NameTooLongForItsService: a name of 64 characters is fine without a Service and refused with one, at creation and later.
func TestV1NameTooLongForItsService(t *testing.T) {
	long := strings.Repeat("a", 64)
	runRows(t,
		row{id: "at-creation", rule: "refused at metadata.name", beyond: "since v1.0.6", run: func(t *tester) {
			refused(t, long, createError(t, newNamespace(t), long, framework.WithService), invalid, "metadata.name")
		}},
		row{id: "later", rule: "accepted without a Service, refused when one is asked for", beyond: "since v1.0.6", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, long, unscheduled)
			_, err := tryPatch(t, namespace, long, `{"spec":{"service":true}}`)
			refused(t, long, err, invalid, "metadata.name")
			patch(t, namespace, long, `{"metadata":{"labels":{"still":"writable"}}}`)
		}},
		row{id: "at-the-limit", rule: "63 characters are accepted", run: func(t *tester) {
			if err := createError(t, newNamespace(t), long[:63], framework.WithService); err != nil {
				t.Error(err)
			}
		}},
	)
}

// TestV2NamesThatNeverWork: what cannot name a Sandbox is refused, and a dot where a Service must have the name too.
func TestV2NamesThatNeverWork(t *testing.T) {
	runRows(t,
		row{id: "refused", rule: "capitals, underscores and hyphens or dots at the ends are refused at metadata.name", run: func(t *tester) {
			namespace := newNamespace(t)
			for _, name := range []string{"A1", "a_b", "-a", "a-", "a.", ".a", "a b", "ä"} {
				refused(t, name, createError(t, namespace, name), invalid, "metadata.name: Invalid value")
			}
		}},
		row{id: "dots", rule: "a dot is accepted without a Service", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "a.b", podReady)
			await(t, namespace, "a.b", ready())
		}},
		row{id: "dots-with-service", rule: "and refused with one", beyond: earlier, run: func(t *tester) {
			refused(t, "a.b", createError(t, newNamespace(t), "a.b", framework.WithService), invalid, "metadata.name", "Service")
		}},
	)
}

// TestV3LongVolumeNames: the name of a template is a DNS label, and with that of the Sandbox it names a claim.
func TestV3LongVolumeNames(t *testing.T) {
	runRows(t,
		row{id: "label", rule: "64 characters are refused", beyond: earlier, run: func(t *tester) {
			refused(t, "64", createError(t, newNamespace(t), "box", framework.WithVolume(strings.Repeat("v", 64))), invalid, "spec.volumeClaimTemplates[0].metadata.name")
		}},
		row{id: "with-the-sandbox", rule: "together with the name of the Sandbox they are at most 253", beyond: earlier, run: func(t *tester) {
			namespace := newNamespace(t)
			volume := framework.WithVolume(strings.Repeat("v", 63))
			refused(t, "264", createError(t, namespace, strings.Repeat("s", 200), volume), invalid, "spec.volumeClaimTemplates[0].metadata.name", "253")
			if err := createError(t, namespace, strings.Repeat("s", 189), volume); err != nil {
				t.Errorf("253 characters: %v", err)
			}
		}},
	)
}

// TestV4NamelessAndDuplicateVolumes: each template has a name of its own.
func TestV4NamelessAndDuplicateVolumes(t *testing.T) {
	runRows(t,
		row{id: "duplicate", rule: "the second of a name is refused", beyond: earlier, run: func(t *tester) {
			refused(t, "twice", createError(t, newNamespace(t), "box", framework.WithVolume("data"), framework.WithVolume("data")), invalid, "spec.volumeClaimTemplates[1].metadata.name: Duplicate value")
		}},
		row{id: "nameless", rule: "a name is required", beyond: earlier, run: func(t *tester) {
			refused(t, "nameless", createError(t, newNamespace(t), "box", framework.WithVolume("")), invalid, "spec.volumeClaimTemplates[0].metadata.name: Required value")
		}},
	)
}

// TestV5VolumeOfTheSameNameInThePod: the claim takes the place of the Pod's own volume.
func TestV5VolumeOfTheSameNameInThePod(t *testing.T) {
	runRows(t, row{id: "claim-wins", rule: "the Pod has one volume of that name, and it is the claim", run: func(t *tester) {
		namespace := newNamespace(t)
		create(t, namespace, "s1", unscheduled, framework.WithVolume("data"), with(func(s *v1beta1.SandboxSpec) {
			s.PodTemplate.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}))
		volumes := slices.DeleteFunc(awaitPod(t, namespace, "s1").Spec.Volumes, func(v corev1.Volume) bool { return v.Name != "data" })
		if len(volumes) != 1 || volumes[0].PersistentVolumeClaim == nil || volumes[0].PersistentVolumeClaim.ClaimName != "data-s1" {
			t.Errorf("got %+v", volumes)
		}
	}})
}

// TestV6TemplateThatIsNoPod: a template that can never become a Pod is refused at once, with the field that is wrong.
func TestV6TemplateThatIsNoPod(t *testing.T) {
	var rows []row
	for id, test := range map[string]struct{ members, field string }{
		"undeclared-volume":  {container(`"volumeMounts":[{"name":"nope","mountPath":"/x"}]`), "spec.podTemplate.spec.containers[0].volumeMounts[0].name"},
		"restart-policy":     {podTemplate(`"restartPolicy":"Sometimes"`), "spec.podTemplate.spec.restartPolicy"},
		"no-image":           {`"podTemplate":{"spec":{"containers":[{"name":"a"}]}}`, "spec.podTemplate.spec.containers[0].image"},
		"name-in-both-lists": {podTemplate(`"initContainers":[{"name":"main","image":"a"}]`), "spec.podTemplate.spec.initContainers[0].name"},
		"label":              {`"podTemplate":{"metadata":{"labels":{"a":"not a value"}},"spec":{"containers":[{"name":"a","image":"a"}]}}`, "spec.podTemplate.metadata.labels"},
		"port":               {container(`"ports":[{"containerPort":65536}]`), "spec.podTemplate.spec.containers[0].ports[0].containerPort"},
	} {
		rows = append(rows, row{id: id, rule: "refused at " + test.field, beyond: earlier, run: func(t *tester) {
			refused(t, id, post(t, newNamespace(t), body("box", test.members), "dryRun", "All").Error(), invalid, test.field+": ")
		}})
	}
	rows = append(rows,
		row{id: "no-containers", rule: "a Pod has a container", run: func(t *tester) {
			refused(t, "none", post(t, newNamespace(t), body("box", `"podTemplate":{"spec":{}}`), "dryRun", "All").Error(), invalid, "spec.podTemplate.spec.containers")
		}},
		row{id: "no-containers-empty", rule: "an empty list of containers is none", beyond: earlier, run: func(t *tester) {
			refused(t, "empty", post(t, newNamespace(t), body("box", `"podTemplate":{"spec":{"containers":[]}}`), "dryRun", "All").Error(), invalid, "spec.podTemplate.spec.containers")
		}},
		row{id: "update", rule: "a change to a template that can never become a Pod is refused, any other change is not", beyond: earlier, run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", framework.Suspended)
			_, err := tryPatch(t, namespace, "box", `{"spec":{"podTemplate":{"spec":{"restartPolicy":"Sometimes"}}}}`)
			refused(t, "update", err, invalid, "spec.podTemplate.spec.restartPolicy")
		}},
		row{id: "pod-security", rule: "a Pod that the namespace does not admit is forbidden", beyond: earlier, run: func(t *tester) {
			namespace := newNamespace(t)
			label := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`
			if _, err := env.kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(label), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			// The plugin learns of the label by a watch.
			eventually(t, "refusal", func(context.Context) error {
				err := createError(t, namespace, "box")
				switch {
				case err == nil:
					return errors.New("it was admitted")
				case !apierrors.IsForbidden(err), !strings.Contains(err.Error(), "spec.podTemplate: violates PodSecurity"):
					return err
				}
				return nil
			})
		}},
		row{id: "may-pass", rule: "what keeps the Pod away for now is a warning", beyond: "a CRD gives no warnings", run: func(t *tester) {
			namespace := newNamespace(t)
			quota(t, namespace, "pods", "0")
			result := post(t, namespace, body("box", podTemplate()), "dryRun", "All")
			if err := result.Error(); err != nil {
				t.Fatal(err)
			}
			if got := result.Warnings(); len(got) != 1 || !strings.Contains(got[0].Text, "exceeded quota") {
				t.Errorf("warnings are %v", got)
			}
		}},
	)
	runRows(t, rows...)
}

// TestV7BadQuantities: no quantity that cannot be read is ever stored, and one bad object does not spoil lists.
func TestV7BadQuantities(t *testing.T) {
	var rows []row
	for id, member := range map[string]string{
		"suffix": container(`"resources":{"limits":{"memory":"4gb"}}`), "empty": container(`"resources":{"limits":{"cpu":""}}`),
		"blank": podTemplate() + `,"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1 Gi"}}}}]`,
	} {
		rows = append(rows, row{id: id, rule: "a quantity that cannot be read is refused", run: func(t *tester) {
			refused(t, id, post(t, newNamespace(t), body("box", member), "dryRun", "All").Error(), malformed)
		}})
	}
	for id, member := range map[string]string{
		"negative": container(`"resources":{"requests":{"memory":"-1"}}`), "request-above-limit": container(`"resources":{"limits":{"cpu":"100m"},"requests":{"cpu":"200m"}}`),
	} {
		rows = append(rows, row{id: id, rule: "a quantity that makes no sense is refused where it stands", beyond: earlier, run: func(t *tester) {
			refused(t, id, post(t, newNamespace(t), body("box", member), "dryRun", "All").Error(), invalid, "spec.podTemplate.spec.containers[0].resources")
		}})
	}
	for id, storage := range map[string]string{"storage-negative": "-1Gi", "storage-none": "0"} {
		rows = append(rows, row{id: id, rule: "storage is more than nothing", beyond: earlier, run: func(t *tester) {
			err := post(t, newNamespace(t), body("box", podTemplate(), `"volumeClaimTemplates":[{"metadata":{"name":"d"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"`+storage+`"}}}}]`), "dryRun", "All").Error()
			refused(t, id, err, invalid, "spec.volumeClaimTemplates[0].spec.resources.requests")
		}})
	}
	runRows(t, rows...)
}

// TestV8DuplicateVariable: a variable is there once, whichever way it is applied.
func TestV8DuplicateVariable(t *testing.T) {
	twice := strings.Replace(manifest("box", "operatingMode: Suspended"), "command:", "env: [{name: X, value: a}, {name: X, value: b}]\n        command:", 1)
	once := strings.Replace(twice, ", {name: X, value: b}", "", 1)
	var rows []row
	for id, side := range map[string]string{"client-side": "--server-side=false", "server-side": "--server-side=true"} {
		rows = append(rows, row{id: id, rule: "twice is refused or warned of; after it is put right, it is there once", run: func(t *tester) {
			namespace := newNamespace(t)
			if got := kubectl(t, namespace, twice, "apply", side, "-f", "-"); got.Code == 0 && !strings.Contains(got.Stderr, "X") {
				t.Errorf("twice was accepted without a word: %+v", got)
			}
			mustKubectl(t, namespace, once, "apply", side, "-f", "-")
			if got := get(t, namespace, "box").Spec.PodTemplate.Spec.Containers[0].Env; len(got) != 1 || got[0].Value != "a" {
				t.Errorf("got %+v", got)
			}
		}})
	}
	runRows(t, rows...)
}

// TestV9ValueAndValueFrom: a variable has one source.
func TestV9ValueAndValueFrom(t *testing.T) {
	const from = `"env":[{"name":"X","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]`
	runRows(t,
		row{id: "both", rule: "both are refused", beyond: earlier, run: func(t *tester) {
			err := post(t, newNamespace(t), body("box", container(strings.Replace(from, `"name":"X"`, `"name":"X","value":"a"`, 1))), "dryRun", "All").Error()
			refused(t, "both", err, invalid, "spec.podTemplate.spec.containers[0].env[0].valueFrom")
		}},
		row{id: "replaced", rule: "a merge patch with a value alone replaces the other source", run: func(t *tester) {
			namespace := newNamespace(t)
			if err := post(t, namespace, body("box", container(from), `"operatingMode":"Suspended"`)).Error(); err != nil {
				t.Fatal(err)
			}
			patched := patch(t, namespace, "box", `{"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"a","env":[{"name":"X","value":"a"}]}]}}}}`)
			if got := patched.Spec.PodTemplate.Spec.Containers[0].Env; len(got) != 1 || got[0].Value != "a" || got[0].ValueFrom != nil {
				t.Errorf("got %+v", got)
			}
		}},
	)
}

// TestV10SillyNumbers: numbers out of their range are refused, those out of the type are malformed.
func TestV10SillyNumbers(t *testing.T) {
	runRows(t,
		row{id: "negative", rule: "a negative deadline or period is refused", beyond: earlier, run: func(t *tester) {
			namespace := newNamespace(t)
			for _, member := range []string{podTemplate(`"activeDeadlineSeconds":-1`), container(`"livenessProbe":{"exec":{"command":["a"]},"periodSeconds":-1}`)} {
				refused(t, member, post(t, namespace, body("box", member), "dryRun", "All").Error(), invalid, "spec.podTemplate.spec.", "Seconds")
			}
		}},
		row{id: "too-large", rule: "a number that its type cannot hold is refused", run: func(t *tester) {
			namespace := newNamespace(t)
			for _, member := range []string{container(`"ports":[{"containerPort":2147483648}]`), podTemplate(`"activeDeadlineSeconds":9223372036854775808`), podTemplate(`"priority":"3"`)} {
				refused(t, member, post(t, namespace, body("box", member), "dryRun", "All").Error(), malformed)
			}
		}},
	)
}

// TestV11Dates: RFC 3339 and nothing else, kept as the same moment in UTC.
func TestV11Dates(t *testing.T) {
	send := func(t *tester, namespace, date string) (*v1beta1.Sandbox, error) {
		t.Helper()
		sandbox := &v1beta1.Sandbox{}
		err := post(t, namespace, body("box", podTemplate(), `"shutdownTime":"`+date+`"`), "dryRun", "All").Into(sandbox)
		return sandbox, err
	}
	runRows(t,
		row{id: "refused", rule: "no zone, no T, no such hour: refused", run: func(t *tester) {
			namespace := newNamespace(t)
			for _, date := range []string{"2026-09-01 10:00", "2026-09-01T10:00:00", "2026-09-01", "2026-09-01T24:00:00Z", "2026-02-30T00:00:00Z", "10:00", ""} {
				_, err := send(t, namespace, date)
				refused(t, date, err, malformed)
			}
		}},
		row{id: "says-so", rule: "and the answer says what the form is", run: func(t *tester) {
			_, err := send(t, newNamespace(t), "2026-09-01 10:00")
			if err == nil || !strings.Contains(err.Error(), "2026-09-01 10:00") && !strings.Contains(err.Error(), "date-time") {
				t.Errorf("got %v", err)
			}
		}},
		row{id: "utc", rule: "another zone is the same moment", run: func(t *tester) {
			sandbox, err := send(t, newNamespace(t), "2126-09-01T10:00:00+09:00")
			if want := time.Date(2126, 9, 1, 1, 0, 0, 0, time.UTC); err != nil || !sandbox.Spec.ShutdownTime.Time.Equal(want) {
				t.Errorf("%v, got %v, want %v", err, sandbox.Spec.ShutdownTime, want)
			}
		}},
		row{id: "far", rule: "the year 9999 is a year as any other: the Sandbox runs", run: func(t *tester) {
			namespace := newNamespace(t)
			if err := post(t, namespace, body("box", podTemplate(`"schedulerName":"nobody"`), `"shutdownTime":"9999-12-31T23:59:59Z"`)).Error(); err != nil {
				t.Fatal(err)
			}
			awaitPod(t, namespace, "box")
			patchPod(t, namespace, "box", podReady, "status")
			await(t, namespace, "box", ready())
		}},
	)
}

// TestV12NearMissesOfEnums: what is almost a value is none, and a value of another kind's enum is none either.
func TestV12NearMissesOfEnums(t *testing.T) {
	runRows(t, row{id: "refused", rule: "Unsupported value, with those that are", run: func(t *tester) {
		namespace := newNamespace(t)
		for member, field := range map[string]string{
			`"operatingMode":"suspended"`: "spec.operatingMode", `"operatingMode":"Stopped"`: "spec.operatingMode", `"shutdownPolicy":"delete"`: "spec.shutdownPolicy",
			`"shutdownPolicy":"DeleteForeground"`: "spec.shutdownPolicy",
		} {
			refused(t, member, post(t, namespace, body("box", podTemplate(), member), "dryRun", "All").Error(), invalid, field+": Unsupported value", "supported values: ")
		}
	}})
}

// TestV13FieldsOfTheOldVersion: spec.replicas is never dropped in silence by a client that asks.
func TestV13FieldsOfTheOldVersion(t *testing.T) {
	runRows(t, row{id: "replicas", rule: "strict is refused, warn warns, kubectl is strict unless told otherwise", run: func(t *tester) {
		namespace := newNamespace(t)
		refused(t, "strict", post(t, namespace, body("box", podTemplate(), `"replicas":0`), "fieldValidation", "Strict", "dryRun", "All").Error(), []int32{400}, `unknown field "spec.replicas"`)
		for _, mode := range []string{"Warn", ""} {
			result := post(t, namespace, body("box", podTemplate(), `"replicas":0`), "fieldValidation", mode, "dryRun", "All")
			if err := result.Error(); err != nil || len(result.Warnings()) != 1 || !strings.Contains(result.Warnings()[0].Text, `unknown field "spec.replicas"`) {
				t.Errorf("mode %q: %v, warnings %v", mode, err, result.Warnings())
			}
		}
		if got := kubectl(t, namespace, manifest("box", "replicas: 0"), "create", "-f", "-"); got.Code == 0 || !strings.Contains(got.Stderr, "spec.replicas") {
			t.Errorf("kubectl: %+v", got)
		}
	}})
}

// TestV14ChangedVolumeClaimTemplates: another size is refused, another spelling of the same is not.
func TestV14ChangedVolumeClaimTemplates(t *testing.T) {
	sized := func(size string) string {
		return manifest("box", "operatingMode: Suspended", "volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "+size+"}}}}]")
	}
	runRows(t,
		row{id: "refused", rule: "another size is refused; the same manifest and a label are not", run: func(t *tester) {
			namespace := newNamespace(t)
			mustKubectl(t, namespace, sized("1Gi"), "apply", "-f", "-")
			if got := kubectl(t, namespace, sized("2Gi"), "apply", "-f", "-"); got.Code == 0 || !strings.Contains(got.Stderr, "volumeClaimTemplates is immutable") {
				t.Errorf("got %+v", got)
			}
			if got := mustKubectl(t, namespace, sized("1Gi"), "apply", "-f", "-"); !strings.Contains(got, "unchanged") {
				t.Errorf("got %s", got)
			}
			patch(t, namespace, "box", `{"metadata":{"labels":{"a":"b"}}}`)
		}},
		row{id: "spelling", rule: "1024Mi is 1Gi, and no new claim", beyond: "a schema compares strings", run: func(t *tester) {
			namespace := newNamespace(t)
			mustKubectl(t, namespace, sized("1Gi"), "apply", "-f", "-")
			eventually(t, "claim", func(ctx context.Context) error {
				_, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, "data-box", metav1.GetOptions{})
				return err
			})
			before := claim(t, namespace, "data-box")
			mustKubectl(t, namespace, sized("1024Mi"), "apply", "-f", "-")
			if after := claim(t, namespace, "data-box"); after == nil || after.UID != before.UID {
				t.Errorf("before %+v, after %+v", before, after)
			}
		}},
	)
}

// TestV15OnePortOnTwoProtocols: the Service has all ports under names of their own, in one order, whatever the spec says twice.
func TestV15OnePortOnTwoProtocols(t *testing.T) {
	runRows(t, row{id: "names", rule: "8006, 3389/TCP, 3389/UDP and 5900 are four ports of the Service, and stay as they are", run: func(t *tester) {
		namespace := newNamespace(t)
		create(t, namespace, "box", unscheduled, framework.WithService, ports(
			corev1.ContainerPort{ContainerPort: 8006}, corev1.ContainerPort{ContainerPort: 3389}, corev1.ContainerPort{ContainerPort: 3389, Protocol: corev1.ProtocolUDP}, corev1.ContainerPort{ContainerPort: 5900}))
		got := awaitService(t, namespace, "box", func(*corev1.Service) error { return nil })
		if diff := cmp.Diff([]string{"p-3389-tcp=3389/TCP>3389", "p-3389-udp=3389/UDP>3389", "p-5900-tcp=5900/TCP>5900", "p-8006-tcp=8006/TCP>8006"}, portsOf(got)); diff != "" {
			t.Errorf("ports (-want +got):\n%s", diff)
		}
		patchPod(t, namespace, awaitPod(t, namespace, "box").Name, podReady, "status")
		await(t, namespace, "box", ready())
		if now := service(t, namespace, "box"); now.ResourceVersion != got.ResourceVersion {
			t.Errorf("it was written again: %+v", now.ManagedFields)
		}
	}})
}

// TestV16ServiceTrueUnsetFalse: one Service through the three values, and a Service of somebody else in none of them.
func TestV16ServiceTrueUnsetFalse(t *testing.T) {
	runRows(t,
		row{id: "own", rule: "true makes it, unset keeps it, false deletes it", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "s1", podReady, framework.WithService)
			made := awaitService(t, namespace, "s1", func(*corev1.Service) error { return nil })
			patch(t, namespace, "s1", `{"spec":{"service":null}}`)
			await(t, namespace, "s1", ready())
			if kept := service(t, namespace, "s1"); kept == nil || kept.UID != made.UID {
				t.Errorf("unset: %+v", kept)
			}
			patch(t, namespace, "s1", `{"spec":{"service":false}}`)
			awaitGone(t, "Service", env.kube.CoreV1().Services(namespace).Get, "s1")
		}},
		row{id: "strangers", rule: "a Service with an address that is there before is an error for true, and is not touched", run: func(t *tester) {
			namespace := newNamespace(t)
			before := existingService(t, namespace, "s2", "", nil, nil)
			create(t, namespace, "s2", framework.WithService, unscheduled)
			for _, value := range []string{"true", "null", "false"} {
				patch(t, namespace, "s2", `{"spec":{"service":`+value+`}}`)
				reason := v1beta1.SandboxReasonDependenciesNotReady
				if value == "true" {
					reason = v1beta1.SandboxReasonReconcilerError
				}
				await(t, namespace, "s2", notReady(reason, ""))
			}
			if diff := cmp.Diff(before, service(t, namespace, "s2")); diff != "" {
				t.Errorf("the Service changed (-before +after):\n%s", diff)
			}
		}},
	)
}

// TestV17ManifestsOfUsers: manifests of the kinds people write are accepted strictly, and lose nothing on the way round.
func TestV17ManifestsOfUsers(t *testing.T) {
	var rows []row
	for _, file := range manifests(t) {
		rows = append(rows, row{id: file.name, rule: "accepted strictly, stored as written, and unchanged when what was stored is applied", run: func(t *tester) {
			namespace := newNamespace(t)
			mustKubectl(t, namespace, file.text, "apply", "--validate=strict", "-f", "-")
			sandbox := get(t, namespace, file.sandbox.Name)
			if diff := difference(file.sandbox.Spec, sandbox.Spec); diff != "" {
				t.Errorf("what was written and what is stored (-want +got):\n%s", diff)
			}
			// A write of the status in between would be a conflict.
			settled := settle(t, namespace, sandbox.Name)
			mustKubectl(t, namespace, file.text, "apply", "-f", "-")
			if after := get(t, namespace, sandbox.Name); after.ResourceVersion != settled.ResourceVersion {
				t.Errorf("apply of what was written changed it (-before +after):\n%s", cmp.Diff(settled, after))
			}
			mustKubectl(t, namespace, mustKubectl(t, namespace, "", "get", "sandbox", sandbox.Name, "-o", "yaml"), "apply", "-f", "-")
			if after := get(t, namespace, sandbox.Name); after.Generation != settled.Generation {
				t.Errorf("apply of what was stored changed the spec (-before +after):\n%s", cmp.Diff(settled.Spec, after.Spec))
			}
		}})
	}
	runRows(t, rows...)
}

// difference says what of a spec is not in another. What the other has besides are defaults.
func difference(want, got v1beta1.SandboxSpec) string {
	merged := got.DeepCopy()
	data, err := json.Marshal(want)
	if err != nil {
		return err.Error()
	}
	// Decoding over a copy replaces what is written, and leaves what is not.
	if err := json.Unmarshal(data, merged); err != nil {
		return err.Error()
	}
	if equality.Semantic.DeepEqual(*merged, got) {
		return ""
	}
	return cmp.Diff(*merged, got)
}

// TestV18TooBig: what is too big is refused with a code that says so, and what is big but not too big can be applied.
func TestV18TooBig(t *testing.T) {
	big := func(bytes int) string {
		return strings.Replace(manifest("box", "operatingMode: Suspended"), "command:", "env: [{name: X, value: "+strings.Repeat("x", bytes)+"}]\n        command:", 1)
	}
	runRows(t,
		row{id: "annotation", rule: "300 KiB are too much for the annotation of kubectl apply, and not for server-side apply", run: func(t *tester) {
			namespace := newNamespace(t)
			if got := kubectl(t, namespace, big(300<<10), "apply", "-f", "-"); got.Code == 0 || !strings.Contains(got.Stderr, "Too long") {
				t.Errorf("client side: code %d, %.300s", got.Code, got.Stderr)
			}
			mustKubectl(t, namespace, big(300<<10), "apply", "--server-side", "-f", "-")
		}},
		row{id: "body", rule: "4 MiB are too large a body", run: func(t *tester) { checkTooLarge(t, 4<<20) }},
		row{id: "object", rule: "2 MiB are too large an object", beyond: "there it is an error of the server", run: func(t *tester) { checkTooLarge(t, 2<<20) }},
	)
}

// checkTooLarge fails the row unless a Sandbox of a size is refused as the client's fault.
func checkTooLarge(t *tester, size int) {
	t.Helper()
	err := post(t, newNamespace(t), body("box", container(`"env":[{"name":"X","value":"`+strings.Repeat("x", size)+`"}]`), `"operatingMode":"Suspended"`)).Error()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %.300v, want %d", err, http.StatusRequestEntityTooLarge)
	}
}

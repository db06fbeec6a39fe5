package apiserver_test

import (
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func denial(text string) *metav1.Status { return &metav1.Status{Message: text, Code: 403} }

// configure creates a configuration for ConfigMaps of the namespace, with webhooks that are
// described by their path and further fields.
func (w *world) configure(h *hooks, kind, namespace, operations string, webhooks ...[2]string) {
	w.Helper()
	plural := map[string]string{"Mutating": "mutating", "Validating": "validating"}[kind]
	body := fmt.Sprintf("metadata: {name: %s}\nwebhooks:\n", namespace)
	for i, hook := range webhooks {
		body += fmt.Sprintf(`- name: h%d.example.com
  admissionReviewVersions: [v1]
  clientConfig: {url: "%s/%s", caBundle: "%s"}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [%s]}]
  namespaceSelector: {matchLabels: {test: %s}}
%s
`, i, h.url, hook[0], h.ca, operations, namespace, hook[1])
	}
	path := "/apis/admissionregistration.k8s.io/v1/" + plural + "webhookconfigurations"
	w.expect(201, "", "POST", path, body)
	w.Cleanup(func() { w.expectDeleted(path + "/" + namespace) })
}

// expectDeleted deletes an object at the end of a test.
func (w *world) expectDeleted(path string) {
	w.send("DELETE", path, "{}")
}

func data(o map[string]any) map[string]string {
	m, _, _ := unstructured.NestedStringMap(o, "data")
	return m
}

func testWebhooks(w *world, h *hooks) {
	maps := "/api/v1/namespaces/webhooks/configmaps"
	w.configure(h, "Mutating", "webhooks", "CREATE, UPDATE", [2]string{"describe", `  sideEffects: None
  objectSelector: {matchLabels: {describe: "yes"}}
  matchConditions: [{name: c, expression: "!('skip' in object.data)"}]`})
	w.configure(h, "Validating", "webhooks", `"*"`, [2]string{"deny", "  sideEffects: None"})
	w.until(403, maps, "{metadata: {name: a}, data: {deny: x}}")
	require.Eventually(w, func() bool {
		_, o, _ := w.send("POST", maps+"?dryRun=All", "{metadata: {name: a, labels: {describe: 'yes'}}, data: {a: b}}")
		return data(o)["seen"] == `CREATE ConfigMap webhooks/configmaps name=a dry=true`
	}, minute, tick)

	o := w.expect(201, "", "POST", maps, "{metadata: {name: a, labels: {describe: 'yes'}}, data: {a: b}}")
	assert.Equal(w, `CREATE ConfigMap webhooks/configmaps name=a dry=false`, data(o)["seen"])
	o = w.expect(200, "", "PATCH", maps+"/a", "{data: {a: c}}")
	assert.Equal(w, `UPDATE ConfigMap webhooks/configmaps name=a dry=false`, data(o)["seen"])
	o = w.expect(201, "", "POST", maps, "{metadata: {generateName: g-, labels: {describe: 'yes'}}, data: {a: b}}")
	assert.Equal(w, "CREATE ConfigMap webhooks/configmaps name= dry=false", data(o)["seen"], "the name is generated later")
	o = w.expect(201, "", "POST", maps, "{metadata: {name: b}, data: {a: b}}")
	assert.Empty(w, data(o)["seen"], "the object selector does not match")
	o = w.expect(201, "", "POST", maps, "{metadata: {name: c, labels: {describe: 'yes'}}, data: {skip: b}}")
	assert.Empty(w, data(o)["seen"], "the match condition does not hold")

	_, _, header := w.send("POST", maps, "{metadata: {name: d}, data: {a: b}}")
	assert.Equal(w, []string{`299 - "be careful"`}, header.Values("Warning"))
	w.expect(403, `admission webhook "h0.example.com" denied the request: not created`, "POST", maps, "{metadata: {name: e}, data: {deny: x}}")
	w.expect(403, `admission webhook "h0.example.com" denied the request: not updated`, "PATCH", maps+"/a", "{data: {deny: x}}")
	w.expect(403, `admission webhook "h0.example.com" denied the request: not deleted`, "DELETE", maps+"/a", "{}")
	w.expect(201, "", "POST", "/api/v1/namespaces/default/configmaps?dryRun=All", "{metadata: {name: e}, data: {deny: x}}")
}

func testFailures(w *world, h *hooks) {
	maps := "/api/v1/namespaces/failures/configmaps"
	selector := func(name string) string {
		return "\n  objectSelector: {matchLabels: {hook: " + name + "}}"
	}
	w.configure(h, "Validating", "failures", "CREATE",
		[2]string{"broken", "  sideEffects: None\n  failurePolicy: Fail" + selector("fail")},
		[2]string{"broken", "  sideEffects: None\n  failurePolicy: Ignore" + selector("ignore")},
		[2]string{"slow", "  sideEffects: None\n  timeoutSeconds: 1\n  failurePolicy: Ignore" + selector("slow")},
		[2]string{"deny", "  sideEffects: NoneOnDryRun" + selector("dry")},
	)
	object := func(name string) string { return "{metadata: {name: " + name + ", labels: {hook: " + name + "}}}" }
	w.until(500, maps, object("fail"))
	w.expect(500, `Internal error occurred: failed calling webhook "h0.example.com": failed to call webhook: an error on the server ("broken") has prevented the request from succeeding`, "POST", maps, object("fail"))
	w.expect(201, "", "POST", maps, object("ignore"))
	w.expect(201, "", "POST", maps, object("slow"))
	w.expect(201, "", "POST", maps+"?dryRun=All", object("dry"))
}

func testReinvocation(w *world, h *hooks) {
	maps := "/api/v1/namespaces/reinvocation/configmaps"
	w.configure(h, "Mutating", "reinvocation", "CREATE",
		[2]string{"count", "  sideEffects: None\n  reinvocationPolicy: IfNeeded"},
		[2]string{"once", "  sideEffects: None"},
	)
	require.Eventually(w, func() bool {
		_, o, _ := w.send("POST", maps+"?dryRun=All", "{metadata: {name: a}, data: {a: b}}")
		return data(o)["count"] != ""
	}, minute, tick)
	o := w.expect(201, "", "POST", maps, "{metadata: {name: a}, data: {a: b}}")
	assert.Equal(w, map[string]string{"a": "b", "count": "xx", "once": "1"}, data(o))
	o = w.expect(201, "", "POST", maps, "{metadata: {name: b}, data: {once: '0'}}")
	assert.Equal(w, map[string]string{"count": "x", "once": "0"}, data(o), "without a change there is no second call")
}

func testPolicies(w *world, _ *hooks) {
	const group = "/apis/admissionregistration.k8s.io/v1/"
	maps := "/api/v1/namespaces/policies/configmaps"
	w.expect(201, "", "POST", "/api/v1/namespaces/policies/secrets", "{metadata: {name: limit}, stringData: {max: '3'}}")
	w.expect(201, "", "POST", group+"validatingadmissionpolicies", `metadata: {name: policies}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]}
  variables: [{name: size, expression: "size(object.data)"}]
  validations:
  - {expression: "variables.size < 3", messageExpression: "'has ' + string(variables.size) + ' keys'"}
  - {expression: "oldObject == null || oldObject.data == object.data", message: data is immutable, reason: Forbidden}
`)
	w.Cleanup(func() { w.expectDeleted(group + "validatingadmissionpolicies/policies") })
	w.expect(201, "", "POST", group+"validatingadmissionpolicybindings", `metadata: {name: policies}
spec: {policyName: policies, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {test: policies}}}}
`)
	w.Cleanup(func() { w.expectDeleted(group + "validatingadmissionpolicybindings/policies") })
	w.until(422, maps, "{metadata: {name: a}, data: {a: '', b: '', c: ''}}")
	w.expect(422, `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'policies' with binding 'policies' denied request: has 3 keys`,
		"POST", maps, "{metadata: {name: a}, data: {a: '', b: '', c: ''}}")
	w.expect(201, "", "POST", maps, "{metadata: {name: a}, data: {a: ''}}")
	w.expect(403, `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'policies' with binding 'policies' denied request: data is immutable`,
		"PATCH", maps+"/a", "{data: {a: b}}")
	w.expect(200, "", "PATCH", maps+"/a", "{metadata: {labels: {a: b}}}")

	w.expect(201, "", "POST", group+"mutatingadmissionpolicies", `metadata: {name: policies}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'by': 'policy'}}}"}}]
`)
	w.Cleanup(func() { w.expectDeleted(group + "mutatingadmissionpolicies/policies") })
	w.expect(201, "", "POST", group+"mutatingadmissionpolicybindings", `metadata: {name: policies}
spec: {policyName: policies, matchResources: {namespaceSelector: {matchLabels: {test: policies}}}}
`)
	w.Cleanup(func() { w.expectDeleted(group + "mutatingadmissionpolicybindings/policies") })
	require.Eventually(w, func() bool {
		_, o, _ := w.send("POST", maps+"?dryRun=All", "{metadata: {name: m}, data: {a: b}}")
		label, _, _ := unstructured.NestedString(o, "metadata", "labels", "by")
		return label == "policy"
	}, minute, tick)
}

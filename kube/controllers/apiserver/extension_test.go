package apiserver_test

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// eventually waits until f is true: informers of kube-apiserver observe a change later.
func (w *world) eventually(f func() bool) {
	w.Helper()
	require.Eventually(w, f, minute, tick)
}

// convert is the webhook of widgets: spec.size of v1 is spec.length of v2.
func convert(rw http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if json.NewDecoder(r.Body).Decode(&review) != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	res := &apiextensionsv1.ConversionResponse{UID: review.Request.UID}
	res.Result.Status = "Success"
	for _, raw := range review.Request.Objects {
		o := map[string]any{}
		_ = json.Unmarshal(raw.Raw, &o)
		o["apiVersion"] = review.Request.DesiredAPIVersion
		from, to := "size", "length"
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1") {
			from, to = to, from
		}
		if spec, _ := o["spec"].(map[string]any); spec != nil {
			if spec[from] == "never" {
				res.Result.Status, res.Result.Message = "Failure", "it is never converted"
			}
			spec[to] = spec[from]
			delete(spec, from)
		}
		data, _ := json.Marshal(o)
		res.ConvertedObjects = append(res.ConvertedObjects, runtime.RawExtension{Raw: data})
	}
	review.Response, review.Request = res, nil
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(review)
}

func testConversion(w *world, h *hooks) {
	version := func(name, field, storage string) string {
		return "{name: " + name + ", served: true, storage: " + storage + `, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {` +
			field + `: {type: string}}}}}}}`
	}
	w.expect(201, "", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `metadata: {name: widgets.conversion.example.com}
spec: {group: conversion.example.com, scope: Namespaced, names: {plural: widgets, kind: Widget},
 conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "`+h.url+`/convert", caBundle: "`+h.ca+`"}}},
 versions: [`+version("v1", "size", "true")+`, `+version("v2", "length", "false")+`]}`)
	const v1, v2 = "/apis/conversion.example.com/v1/namespaces/conversion/widgets", "/apis/conversion.example.com/v2/namespaces/conversion/widgets"
	w.until(201, v2, "apiVersion: conversion.example.com/v2\nkind: Widget\nmetadata: {name: probe}\nspec: {length: long}")
	spec := func(o map[string]any) map[string]any {
		spec, _, _ := unstructured.NestedMap(o, "spec")
		return spec
	}
	o := w.expect(201, "", "POST", v2, "apiVersion: conversion.example.com/v2\nkind: Widget\nmetadata: {name: a}\nspec: {length: long}")
	assert.Equal(w, map[string]any{"length": "long"}, spec(o))
	o = w.expect(200, "", "GET", v1+"/a", "")
	assert.Equal(w, map[string]any{"size": "long"}, spec(o))
	o = w.expect(200, "", "PATCH", v2+"/a", "spec: {length: short}")
	assert.Equal(w, map[string]any{"length": "short"}, spec(o))
	o = w.expect(200, "", "GET", v2, "")
	items, _, _ := unstructured.NestedSlice(o, "items")
	require.Len(w, items, 1)
	assert.Equal(w, map[string]any{"length": "short"}, spec(items[0].(map[string]any)))
	w.expect(500, "conversion webhook for conversion.example.com/v2, Kind=Widget failed: it is never converted",
		"POST", v2, "apiVersion: conversion.example.com/v2\nkind: Widget\nmetadata: {name: b}\nspec: {length: never}")
}

func testTables(w *world, _ *hooks) {
	w.expect(201, "", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `metadata: {name: gadgets.tables.example.com}
spec: {group: tables.example.com, scope: Namespaced, names: {plural: gadgets, kind: Gadget}, versions: [{name: v1, served: true, storage: true,
 additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size, priority: 1, description: in cm}],
 schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]}`)
	const gadgets = "/apis/tables.example.com/v1/namespaces/tables/gadgets"
	w.until(201, gadgets, "apiVersion: tables.example.com/v1\nkind: Gadget\nmetadata: {name: probe}")
	w.expect(201, "", "POST", gadgets, "apiVersion: tables.example.com/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {size: 3}")
	w.expect(201, "", "POST", "/apis/apps/v1/namespaces/tables/deployments", `metadata: {name: web}
spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: web}]}}}`)
	table := *w
	table.accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
	o := table.expect(200, "", "GET", gadgets, "")
	columns, rows := cells(o)
	assert.Equal(w, []any{"Name", "Size"}, columns)
	assert.Equal(w, [][]any{{"a", 3.0}}, rows)
	o = table.expect(200, "", "GET", "/apis/apps/v1/namespaces/tables/deployments", "")
	columns, rows = cells(o)
	assert.Equal(w, []any{"Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"}, columns)
	require.Len(w, rows, 1)
	rows[0][4] = "age"
	assert.Equal(w, []any{"web", "0/2", 0.0, 0.0, "age", "main", "web", "a=b"}, rows[0])
	columns, rows = cells(table.expect(200, "", "GET", "/api/v1/namespaces/tables/pods", ""))
	assert.Equal(w, []any{"Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"}, columns)
	assert.Empty(w, rows)
	columns, _ = cells(table.expect(200, "", "GET", "/apis/apps/v1/namespaces/tables/controllerrevisions", ""))
	assert.Equal(w, []any{"Name", "Controller", "Revision", "Age"}, columns)
	columns, _ = cells(table.expect(200, "", "GET", "/api/v1/namespaces/tables/limitranges", ""))
	assert.Equal(w, []any{"Name", "Created At"}, columns)
}

// cells returns the names of the columns and the rows of a table.
func cells(o map[string]any) (columns []any, rows [][]any) {
	defined, _ := o["columnDefinitions"].([]any)
	for _, d := range defined {
		columns = append(columns, d.(map[string]any)["name"])
	}
	all, _ := o["rows"].([]any)
	for _, r := range all {
		rows = append(rows, r.(map[string]any)["cells"].([]any))
	}
	return columns, rows
}

func testBuiltin(w *world, _ *hooks) {
	const base = "/api/v1/namespaces/builtin/"
	w.expect(422, `Service "web" is invalid: spec.ports: Required value`, "POST", base+"services", "metadata: {name: web}\nspec: {selector: {a: b}}")
	w.expect(422, `PersistentVolumeClaim "data" is invalid: [spec.accessModes: Required value: at least 1 access mode is required, spec.resources[storage]: Required value]`,
		"POST", base+"persistentvolumeclaims", "metadata: {name: data}\nspec: {}")
	o := w.expect(201, "", "POST", "/apis/policy/v1/namespaces/builtin/poddisruptionbudgets", "metadata: {name: web}\nspec: {minAvailable: 1, selector: {matchLabels: {a: b}}}")
	generation, _, _ := unstructured.NestedFloat64(o, "metadata", "generation")
	assert.Equal(w, 1.0, generation)
	w.expect(422, `Job.batch "sum" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"`,
		"POST", "/apis/batch/v1/namespaces/builtin/jobs", "metadata: {name: sum}\nspec: {template: {spec: {containers: [{name: main, image: sum}]}}}")
	o = w.expect(201, "", "POST", "/apis/batch/v1/namespaces/builtin/jobs",
		"metadata: {name: sum}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: sum}]}}}")
	spec, _, _ := unstructured.NestedMap(o, "spec")
	for _, name := range []string{"selector", "template"} {
		delete(spec, name)
	}
	assert.Equal(w, map[string]any{
		"parallelism": 1.0, "completions": 1.0, "backoffLimit": 6.0, "completionMode": "NonIndexed", "suspend": false,
		"manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed",
	}, spec)
	_, _, header := w.send("POST", base+"pods", "metadata: {name: a}\n"+
		"spec: {containers: [{name: main, image: web, env: [{name: A, value: b}, {name: A, value: c}]}]}")
	assert.Contains(w, strings.Join(header.Values("Warning"), "\n"), `hides previous definition of \"A\", which may be dropped when using apply`)

	// The resource bindings.
	w.expect(404, `pods "absent" not found`, "POST", base+"bindings", "metadata: {name: absent}\ntarget: {kind: Node, name: n1}")
	w.expect(201, "", "POST", base+"bindings", "metadata: {name: a}\ntarget: {kind: Node, name: n1}")
	w.expect(409, `Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"`,
		"POST", base+"bindings", "metadata: {name: a}\ntarget: {kind: Node, name: n2}")

	// An eviction with two budgets.
	w.expect(200, "", "PATCH", base+"pods/a", "metadata: {labels: {a: b}}")
	w.expect(200, "", "PATCH", base+"pods/a/status", "status: {phase: Running}")
	w.expect(201, "", "POST", "/apis/policy/v1/namespaces/builtin/poddisruptionbudgets", "metadata: {name: second}\nspec: {minAvailable: 1, selector: {matchLabels: {a: b}}}")
	w.expect(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		"POST", base+"pods/a/eviction", "apiVersion: policy/v1\nkind: Eviction\nmetadata: {name: a}")

	// The namespace of an object of the cluster is ignored, also in updates.
	w.expect(201, "", "POST", "/api/v1/nodes", "metadata: {name: builtin, namespace: default}")
	w.Cleanup(func() { w.expectDeleted("/api/v1/nodes/builtin") })
	o = w.expect(200, "", "PUT", "/api/v1/nodes/builtin/status", "metadata: {name: builtin, namespace: default}\nstatus: {capacity: {cpu: 1}}")
	namespace, _, _ := unstructured.NestedString(o, "metadata", "namespace")
	assert.Empty(w, namespace)
}

func testDeletion(w *world, _ *hooks) {
	const pods = "/api/v1/namespaces/deletion/pods"
	o := w.expect(201, "", "POST", pods, "metadata: {name: a}\nspec: {containers: [{name: main, image: web}]}")
	version, _, _ := unstructured.NestedString(o, "metadata", "resourceVersion")
	o = w.expect(200, "", "DELETE", pods+"/a", "")
	stamp, _, _ := unstructured.NestedString(o, "metadata", "deletionTimestamp")
	assert.NotEmpty(w, stamp)
	var events []string
	for _, e := range w.watch(pods + "?watch=true&timeoutSeconds=1&resourceVersion=" + version) {
		stamp, _, _ := unstructured.NestedString(e, "object", "metadata", "deletionTimestamp")
		grace, _, _ := unstructured.NestedFieldNoCopy(e, "object", "metadata", "deletionGracePeriodSeconds")
		if stamp != "" && grace == 0.0 {
			stamp = "marked"
		}
		events = append(events, e["type"].(string)+" "+stamp)
	}
	assert.Equal(w, []string{"MODIFIED marked", "DELETED marked"}, events)
}

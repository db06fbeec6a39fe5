package apiserver_test

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	minute = 8 * time.Second
	tick   = 20 * time.Millisecond
	crds   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

	unchecked = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
)

// definition returns a namespaced definition of widgets with a schema of the spec.
func definition(group, spec string) string {
	return `metadata: {name: widgets.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: ` + spec + `
          status: {type: object, properties: {phase: {type: string, pattern: "^[A-Z]"}}}
`
}

func testSchemas(w *world, _ *hooks) {
	w.expect(201, "", "POST", crds, definition("schemas.example.com", `
            type: object
            x-kubernetes-validations:
            - {rule: "self.min <= self.max", message: min exceeds max}
            properties:
              min: {type: integer, default: 1}
              max: {type: integer, default: 5}
              name: {type: string, pattern: "^[a-z]+$", x-kubernetes-validations: [{rule: "self == oldSelf", message: name is immutable}]}
              at: {type: string, format: date-time}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              choice:
                type: object
                properties: {a: {type: string}, b: {type: string}}
                oneOf: [{required: [a]}, {required: [b]}]
              nothing: {type: string, nullable: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}`))
	w.Cleanup(func() { w.expectDeleted(crds + "/widgets.schemas.example.com") })
	path := "/apis/schemas.example.com/v1/namespaces/schemas/widgets"
	widget := func(spec string) string {
		return "{apiVersion: schemas.example.com/v1, kind: Widget, metadata: {name: w}, spec: " + spec + "}"
	}
	w.until(201, path, widget("{}"))
	invalid := func(text, spec string) {
		w.Helper()
		w.expect(422, `Widget.schemas.example.com "w" is invalid: `+text, "POST", path, widget(spec))
	}
	invalid(`spec: Invalid value: min exceeds max`, "{min: 7}")
	invalid(`spec.name: Invalid value: "A": spec.name in body should match '^[a-z]+$'`, "{name: A}")
	invalid(`[spec.at: Invalid value: "today": spec.at in body must be of type date-time: "today", `+unchecked+`]`, "{at: today}")
	invalid(`spec.tags[1]: Duplicate value: "a"`, "{tags: [a, a]}")
	invalid(`<nil>: Invalid value: "": "spec.choice" must validate one and only one schema (oneOf). Found 2 valid alternatives`, "{choice: {a: q, b: r}}")
	o := w.expect(201, "", "POST", path, widget("{name: a, nothing: null, unknown: 1, free: {x: 1}}"))
	assert.Equal(w, map[string]any{"name": "a", "nothing": nil, "min": 1.0, "max": 5.0, "free": map[string]any{"x": 1.0}}, o["spec"])
	w.expect(422, `Widget.schemas.example.com "w" is invalid: spec.name: Invalid value: "b": name is immutable`, "PATCH", path+"/w", "{spec: {name: b}}")
	w.expect(422, `Widget.schemas.example.com "w" is invalid: status.phase: Invalid value: "running": phase in body should match '^[A-Z]'`, "PATCH", path+"/w/status", "{status: {phase: running}}")
	w.expect(200, "", "PATCH", path+"/w/status", "{status: {phase: Running}}")
	w.expect(200, "", "PATCH", path+"/w", "{spec: {max: 9}}")
}

func testDefinitions(w *world, _ *hooks) {
	invalid := func(text, body string) {
		w.Helper()
		code, o, _ := w.send("POST", crds, body)
		assert.Equal(w, 422, code)
		assert.Contains(w, o["message"], text)
	}
	invalid(`compilation failed: ERROR`, definition("definitions.example.com", `{type: object, x-kubernetes-validations: [{rule: "self.none == 1"}]}`))
	invalid(`type: Required value: must not be empty for specified object fields`, definition("definitions.example.com", `{properties: {a: {}}}`))
	invalid(`default: Invalid value: "string"`, definition("definitions.example.com", `{type: object, properties: {a: {type: integer, default: x}}}`))
	o := w.expect(201, "", "POST", crds, definition("definitions.example.com", `{type: object}`))
	w.Cleanup(func() { w.expectDeleted(crds + "/widgets.definitions.example.com") })
	assert.Equal(w, map[string]any{"strategy": "None"}, o["spec"].(map[string]any)["conversion"])
	require.Eventually(w, func() bool {
		code, _, _ := w.send("GET", "/apis/definitions.example.com/v1/widgets", "{}")
		return code == 200
	}, minute, tick)
	code, o, _ := w.send("PATCH", crds+"/widgets.definitions.example.com", "{spec: {scope: Cluster}}")
	assert.Equal(w, 422, code)
	assert.Contains(w, o["message"], `spec.scope: Invalid value: "Cluster": field is immutable`)
}

func testClusterIPs(w *world, _ *hooks) {
	path := "/api/v1/namespaces/cluster-ips/services"
	spec := func(o map[string]any) map[string]any { return o["spec"].(map[string]any) }
	a := spec(w.expect(201, "", "POST", path, "{metadata: {name: a}, spec: {ports: [{port: 80}]}}"))
	assert.NotEmpty(w, a["clusterIP"])
	assert.Equal(w, []any{a["clusterIP"]}, a["clusterIPs"])
	assert.Equal(w, []any{"IPv4"}, a["ipFamilies"])
	assert.Equal(w, "SingleStack", a["ipFamilyPolicy"])
	b := spec(w.expect(201, "", "POST", path, "{metadata: {name: b}, spec: {ports: [{port: 80}]}}"))
	assert.NotEqual(w, a["clusterIP"], b["clusterIP"])
	none := spec(w.expect(201, "", "POST", path, "{metadata: {name: c}, spec: {clusterIP: None, ports: [{port: 80}]}}"))
	assert.Equal(w, "None", none["clusterIP"])
	again := spec(w.expect(200, "", "PATCH", path+"/a", "{spec: {ports: [{port: 81}]}}"))
	assert.Equal(w, a["clusterIP"], again["clusterIP"])
	code, o, _ := w.send("POST", path, "{metadata: {name: d}, spec: {clusterIP: "+a["clusterIP"].(string)+", ports: [{port: 80}]}}")
	assert.Equal(w, 422, code)
	assert.Contains(w, o["message"], "provided IP is already allocated")
}

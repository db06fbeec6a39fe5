package manifest_test

import (
	"fmt"
	"log"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// Decode is strict and names what is wrong.
func ExampleDecode() {
	for _, text := range []string{
		"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: web, imagee: nginx}]}",
		"apiVersion: v1\nkind: Pod\nspec: {containers: [{name: web, resources: {limits: {cpu: lots}}}]}",
		"apiVersion: apps/v1\nkind: Deployment",
		"kind: Pod\n---\nkind: Pod",
	} {
		_, err := manifest.Decode([]byte(text))
		fmt.Println(err)
	}
	// Output:
	// manifest: decode: unknown field "spec.containers[0].imagee"
	// manifest: decode: spec.containers[0].resources.limits.cpu: Invalid value: "lots": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
	// manifest: decode: apiVersion: Unsupported value: "apps/v1": supported values: "v1"; kind: Unsupported value: "Deployment": supported values: "Pod"
	// manifest: decode: has 2 documents; one pod per file
}

// Validate requires a pod with defaults.
func ExampleValidate() {
	pod, err := manifest.Decode([]byte(`
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers:
  - name: web
    image: nginx
    ports: [{containerPort: 80000}]
    volumeMounts: [{name: data, mountPath: /data}]
`))
	if err != nil {
		log.Fatal(err)
	}
	for _, err := range manifest.Validate(manifest.Default(pod)) {
		fmt.Println(err)
	}
	// Output:
	// spec.containers[0].ports[0].containerPort: Invalid value: 80000: must be between 1 and 65535, inclusive
	// spec.containers[0].volumeMounts[0].name: Not found: "data"
}

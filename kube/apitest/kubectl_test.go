package apitest_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

const manifests = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: prod}
data: {a: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
`

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1}
              color: {type: string, default: red, enum: [red, blue]}
              replicas: {type: integer, default: 1}
          status:
            type: object
            properties: {replicas: {type: integer}}
`

// kubectl runs the program against a server.
type kubectl struct {
	t    *testing.T
	path string
	host string
}

func newKubectl(t *testing.T, host string) kubectl {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed: it is compared with the server only where it is")
	}
	return kubectl{t, path, host}
}

func (k kubectl) run(stdin string, args ...string) (string, error) {
	k.t.Helper()
	home := k.t.TempDir()
	cmd := exec.CommandContext(k.t.Context(), k.path, append([]string{"--server", k.host, "--namespace", "prod", "--cache-dir", filepath.Join(home, "cache")}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (k kubectl) ok(stdin string, args ...string) string {
	k.t.Helper()
	out, err := k.run(stdin, args...)
	require.NoError(k.t, err, "kubectl %v: %s", args, out)
	return out
}

func TestKubectl(t *testing.T) {
	api := new(apitest.Server)
	network := httptest.NewServer(api)
	defer network.Close()
	k := newKubectl(t, network.URL)
	assert.Contains(t, k.ok(manifests, "apply", "-f", "-"), "deployment.apps/web created")
	assert.Contains(t, k.ok(manifests, "apply", "-f", "-"), "deployment.apps/web unchanged")
	changed := strings.ReplaceAll(manifests, "image: nginx", "image: nginx:2")
	assert.Contains(t, k.ok(changed, "apply", "-f", "-"), "deployment.apps/web configured")
	assert.Contains(t, k.ok(changed, "apply", "--server-side", "--force-conflicts", "-f", "-"), "deployment.apps/web serverside-applied")
	assert.Contains(t, k.ok(changed, "diff", "-f", "-"), "")
	assert.Contains(t, k.ok("", "get", "deploy,cm"), "deployment.apps/web")
	assert.Contains(t, k.ok("", "get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}"), "nginx:2")
	assert.Contains(t, k.ok("", "get", "all", "-A"), "deployment.apps/web")
	assert.Contains(t, k.ok("", "describe", "deploy", "web"), "Pod Template:")
	k.ok("", "label", "deploy", "web", "tier=front")
	k.ok("", "annotate", "deploy", "web", "note=x")
	k.ok("", "scale", "deploy", "web", "--replicas=5")
	k.ok("", "patch", "deploy", "web", "-p", `{"spec":{"paused":true}}`)
	k.ok("", "set", "image", "deploy/web", "main=nginx:3")
	assert.Equal(t, "front 5 true nginx:3", k.ok("", "get", "deploy", "web", "-o", "jsonpath={.metadata.labels.tier} {.spec.replicas} {.spec.paused} {.spec.template.spec.containers[0].image}"))
	assert.Contains(t, k.ok("", "explain", "deployment.spec.replicas"), "integer")
	out, err := k.run(strings.ReplaceAll(manifests, "replicas:", "replikas:"), "apply", "-f", "-")
	require.Error(t, err)
	assert.Contains(t, out, `unknown field "spec.replikas"`)
	assert.Contains(t, k.ok("", "delete", "deploy,cm", "--all"), "deleted")
	assert.Empty(t, api.List("deployments"))

	k.ok(widgets, "apply", "-f", "-")
	k.ok("", "wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=5s")
	widget := "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n"
	k.ok(widget, "apply", "--server-side", "-f", "-")
	assert.Equal(t, "3 red", k.ok("", "get", "wd", "w", "-o", "jsonpath={.spec.size} {.spec.color}"))
	k.ok("", "scale", "widget", "w", "--replicas=4")
	assert.Contains(t, k.ok("", "explain", "widget.spec.color"), "string")
	out, err = k.run(strings.ReplaceAll(widget, "size: 3", "size: 0"), "apply", "--server-side", "-f", "-")
	require.Error(t, err)
	assert.Contains(t, out, "should be greater than or equal to 1")
	k.ok("", "delete", "crd", "widgets.example.com")
	_, err = k.run("", "get", "widgets")
	require.Error(t, err)
}

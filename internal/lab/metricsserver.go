package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// MetricsServerVersion is that of the metrics-server which .ci/run observe builds.
const MetricsServerVersion = "v0.9.0"

// lookMetricsServer finds it in the cache that .ci/run fills.
func lookMetricsServer() (string, error) {
	dir, err := CacheDir()
	if err != nil {
		return "", err
	}
	return exec.LookPath(filepath.Join(dir, "metrics-server-"+MetricsServerVersion, "metrics-server"))
}

func metricsServerInstalled() error {
	_, err := lookMetricsServer()
	return err
}

// MetricsServer starts the one that kubectl top and autoscalers ask, which reads
// /metrics/resource of every node as somebody who may do that and no more, and waits
// until the API server hands requests on to it. It ends with the control plane. A test
// on a machine that has none is skipped or failed as Need does.
func (c *ControlPlane) MetricsServer() {
	c.t.Helper()
	Need(c.t, "metrics-server")
	c.must("start metrics-server", c.startMetricsServer(c.t.Context()))
}

func (c *ControlPlane) startMetricsServer(ctx context.Context) error {
	if c.metrics != nil {
		return errors.New("it runs already")
	}
	binary, err := lookMetricsServer()
	if err != nil {
		return err
	}
	port, err := freePort(c.ip)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	const user = "lab-metrics-server"
	config, err := c.write("metrics-server", user)
	if err != nil {
		return err
	}
	for _, o := range metricsObjects(user, c.ip.String(), number) {
		if err := c.post(ctx, o.path, o.object); err != nil {
			return err
		}
	}
	c.metrics = c.child("metrics-server", binary, "--kubeconfig="+config, "--authentication-kubeconfig="+config, "--authorization-kubeconfig="+config,
		"--bind-address="+c.ip.String(), "--secure-port="+port, "--cert-dir="+c.file("metrics-server"),
		// Nodes of tests sign their certificates themselves.
		"--kubelet-insecure-tls", "--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port",
		// Figures are a window of two looks old; the shortest there may be.
		"--metric-resolution=10s", "--kubelet-request-timeout=9s")
	if err := os.MkdirAll(c.file("metrics-server"), 0o700); err != nil {
		return err
	}
	if err := c.metrics.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	return c.metrics.await(ctx, "API of metrics", func(ctx context.Context) error {
		return c.get(ctx, "/apis/metrics.k8s.io/v1beta1/nodes")
	})
}

// get asks for something, with all rights.
func (c *ControlPlane) get(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path, nil)
	if err != nil {
		return err
	}
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, said)
	}
	return err
}

// An object is one of an API, as JSON.
type object = map[string]any

// A placed object is one that is created at a path.
type placed struct {
	path   string
	object object
}

// metricsObjects are what a metrics-server is installed with: where it is, and what it
// may do. A service has no loopback address, but may have the name of one.
func metricsObjects(user, host string, port int) []placed {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	subjects := []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}}
	role := func(kind, name string) object {
		return object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
	}
	meta := func(name string) object { return object{"name": name} }
	return []placed{
		{rbac + "clusterroles", object{"metadata": meta("lab:metrics-server"), "rules": []object{
			{"apiGroups": []string{""}, "resources": []string{"nodes/metrics"}, "verbs": []string{"get"}},
			{"apiGroups": []string{""}, "resources": []string{"pods", "nodes"}, "verbs": []string{"get", "list", "watch"}},
		}}},
		{rbac + "clusterrolebindings", object{"metadata": meta("lab:metrics-server"), "roleRef": role("ClusterRole", "lab:metrics-server"), "subjects": subjects}},
		{rbac + "clusterrolebindings", object{"metadata": meta("lab:metrics-server-delegates"), "roleRef": role("ClusterRole", "system:auth-delegator"), "subjects": subjects}},
		{rbac + "namespaces/kube-system/rolebindings", object{"metadata": meta("lab:metrics-server"), "roleRef": role("Role", "extension-apiserver-authentication-reader"), "subjects": subjects}},
		{"/api/v1/namespaces/kube-system/services", object{"metadata": meta("metrics-server"), "spec": object{"type": "ExternalName", "externalName": host}}},
		{"/apis/apiregistration.k8s.io/v1/apiservices", object{"metadata": meta("v1beta1.metrics.k8s.io"), "spec": object{
			"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
			"service": object{"namespace": "kube-system", "name": "metrics-server", "port": port},
		}}},
	}
}

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

// MetricsServerVersion is the version of the metrics-server that .ci/run observe builds.
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

// MetricsServer starts a metrics-server, which serves kubectl top and autoscalers. It reads
// /metrics/resource of every node, with no other permissions. MetricsServer blocks until
// the API server forwards requests to it. It is stopped with the control plane. If the
// machine has no metrics-server, the test is skipped or fails as with Need.
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
		// Nodes of tests have self-signed certificates.
		"--kubelet-insecure-tls", "--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port",
		// Metrics are computed from two scrapes; this is the minimum resolution.
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

// get requests a path as administrator.
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
	printed, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, printed)
	}
	return err
}

// An object is an API object as JSON.
type object = map[string]any

// A placed object is an object and the path at which it is created.
type placed struct {
	path   string
	object object
}

// metricsObjects are the objects of a metrics-server: its address and its permissions. A
// service cannot have a loopback address, but an external name that resolves to one.
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

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The tests run their own binary as the program if it is started by a link of assets.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == "kube-apiserver" || name == "etcd" || os.Getenv("TESTCLUSTER_PROGRAM") != "" {
		os.Args[0] = strings.TrimSuffix(os.Args[0], ".test")
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheEntriesOfAssetsStartTheProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "assets")
	for range 2 { // the second time replaces nothing
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), "testcluster", []string{"assets", "--dir", dir}, &out, io.Discard))
		assert.Equal(t, dir+"\n", out.String())
	}
	for _, name := range entries[:2] {
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name), "--help").CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), name+", as testcluster provides it")
		assert.NotContains(t, string(out), "--insecure-port", "envtest sets the flag if the help has it")
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, len(entries))
}

func TestEtcdIsHealthyUntilItIsStopped(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- run(ctx, "etcd", []string{"--listen-client-urls=" + url, "--data-dir", "x", "--unsafe-no-fsync"}, io.Discard, io.Discard)
	}()
	require.Eventually(t, func() bool {
		res, err := http.Get(url + "/health")
		if err != nil {
			return false
		}
		return res.Body.Close() == nil && res.StatusCode == http.StatusOK
	}, time.Minute, time.Millisecond)
	cancel()
	assert.NoError(t, <-stopped)
}

func TestErrorsNameTheValidArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"want assets, up or help":               {"testcluster", "down"},
		"--nodes is negative":                   {"testcluster", "up", "--nodes=-1"},
		`unexpected argument "x"`:               {"testcluster", "up", "x"},
		"want async, sync or off":               {"testcluster", "up", "--garbage-collection=never"},
		"set --address":                         {"testcluster", "up", "--address=256.0.0.1:1"},
		"--kubeconfig: ":                        {"testcluster", "up", "--kubeconfig=/dev/null/x"},
		"is not a URL such as":                  {"etcd"},
		`use "testcluster up"`:                  {"kube-apiserver"},
		"--service-cluster-ip-range: netip":     {"kube-apiserver", "--service-cluster-ip-range=x"},
		`unexpected argument "x": want --name=`: {"kube-apiserver", "x"},
	} {
		err := run(t.Context(), args[0], args[1:], io.Discard, io.Discard)
		assert.ErrorContains(t, err, want)
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "testcluster", nil, &out, io.Discard))
	assert.Contains(t, out.String(), "KUBEBUILDER_ASSETS=$(testcluster assets)")
}

// A cluster of up, with the real controllers and without, runs a Deployment and deletes what
// it has made.
func TestUpRunsADeployment(t *testing.T) {
	for name, args := range map[string][]string{"controllers": {"--controllers"}, "nodes only": nil} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			ctx, cancel := context.WithCancel(t.Context())
			r, w := io.Pipe()
			stopped := make(chan error, 1)
			go func() {
				stopped <- run(ctx, "testcluster", append([]string{"up", "--nodes=2", "--kubeconfig", file}, args...), w, io.Discard)
				_ = w.Close()
			}()
			line := make([]byte, 1000)
			n, err := r.Read(line)
			if err != nil {
				require.NoError(t, <-stopped)
			}
			assert.Equal(t, "export KUBECONFIG="+file+"\n", string(line[:n]))
			config, err := clientcmd.BuildConfigFromFlags("", file)
			require.NoError(t, err)
			config.QPS = -1
			api, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			if args == nil {
				runPod(t, api)
			} else {
				runDeployment(t, api)
			}
			cancel()
			assert.NoError(t, <-stopped)
		})
	}
}

var podSpec = v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}}

func runPod(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	pods := api.CoreV1().Pods("default")
	_, err := pods.Create(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: podSpec}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		pod, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == v1.PodRunning
	}, time.Minute, 10*time.Millisecond)
}

func runDeployment(t *testing.T, api kubernetes.Interface) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	deployments := api.AppsV1().Deployments("default")
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		d, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, deployments.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		pods, err := api.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	}, time.Minute, 10*time.Millisecond, "the real garbage collector deletes the pods")
}

package controllers_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/controllers"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/runtime/process"
)

func TestMain(m *testing.M) {
	if code, ok := process.Supervise(); ok { // this program also supervises each container
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// The Job of deploy/study runs as pods on a kubelet whose containers are processes, with the real
// controllers and scheduler, and the parts are merged to the results of a single process.
func TestTheIndexedJobOfAStudyRuns(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "study")
	build := exec.Command("go", "build", "-o", program, "./study")
	build.Dir = filepath.Join("..", "..", "examples")
	build.Env = append(os.Environ(), "GOWORK=") // the workspace of the repository
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	manifest, err := os.ReadFile(filepath.Join("..", "..", "deploy", "study", "job.yaml"))
	require.NoError(t, err)
	var job batchv1.Job
	require.NoError(t, yaml.UnmarshalStrict(manifest, &job))

	api := new(apitest.Server)
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", Namespace: "default"}
	config.CurrentContext = "c"
	require.NoError(t, clientcmd.WriteToFile(*config, kubeconfig))

	// The program is the image's entry point and finds the API server by its service account;
	// processes have the user of the test.
	small := []string{"--seeds=10", "--nodes=2", "--pods=20", "--for=2h", "--kubeconfig", kubeconfig}
	container := &job.Spec.Template.Spec.Containers[0]
	container.Command, container.Args, container.SecurityContext = []string{program}, append(container.Args, small...), nil

	rest := api.RESTConfig()
	rest.QPS = -1
	as, err := kubernetes.NewForConfig(rest)
	require.NoError(t, err)
	conn, err := client.ConnectTo(api.RESTConfig(), client.Config{})
	require.NoError(t, err)
	k, err := kubelet.Open(t.Context(), kubelet.Config{
		Configuration: &kubeletconfig.KubeletConfiguration{
			Address: "127.0.0.1", Port: -1, HealthzPort: new(int32(-1)), EvictionHard: map[string]string{}, ContainerRuntimeEndpoint: "process",
		},
		NodeName: "here", RootDir: filepath.Join(dir, "root"), Cluster: kubelet.Cluster{Client: conn}, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- k.Run(ctx) }()
	defer func() { stop(); require.NoError(t, <-stopped) }()
	controllers.Start(t.Context(), t, rest, controllers.Config{Scheduler: true})

	began := time.Now()
	_, err = as.BatchV1().Jobs("default").Create(t.Context(), &job, metav1.CreateOptions{})
	require.NoError(t, err)
	complete := func() bool {
		j, err := as.BatchV1().Jobs("default").Get(t.Context(), job.Name, metav1.GetOptions{})
		return err == nil && j.Status.CompletionTime != nil
	}
	if !assert.Eventually(t, complete, 2*time.Minute, 100*time.Millisecond) {
		for _, o := range api.List("pods") {
			text, _ := json.Marshal(o.(*v1.Pod).Status.ContainerStatuses)
			t.Logf("%s", text)
		}
		t.FailNow()
	}
	t.Logf("%d shares in %v", *job.Spec.Completions, time.Since(began).Round(time.Millisecond))
	require.Len(t, api.List("configmaps"), int(*job.Spec.Completions))

	merged, err := exec.Command(program, "--merge", "--configmaps=study", "--kubeconfig", kubeconfig).CombinedOutput()
	require.NoError(t, err, "%s", merged)
	alone, err := exec.Command(program, small...).CombinedOutput()
	require.NoError(t, err, "%s", alone)
	assert.Equal(t, string(alone), string(merged))
	assert.Contains(t, string(merged), "pods evicted,pack,")
}

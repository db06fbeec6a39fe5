// Package ginkgo_test has a Ginkgo suite with nodes whose pods run.
package ginkgo_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

var (
	api   *kubernetes.Clientset
	nodes *fakenode.Nodes
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Pods")
}

// With envtest, config is the result of testEnv.Start, and AfterSuite calls testEnv.Stop
// after nodes.Stop: the API server waits for the watches of the nodes.
var _ = BeforeSuite(func() {
	config := new(apitest.Server).RESTConfig()
	nodes = fakenode.Start(context.Background(), GinkgoT(), config, fakenode.Config{}) // not the SpecContext: it ends with BeforeSuite
	var err error
	api, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() { nodes.Stop() })

var _ = Describe("A pod", func() {
	phase := func(ctx context.Context, name string) func(Gomega) v1.PodPhase {
		return func(g Gomega) v1.PodPhase {
			pod, err := api.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			return pod.Status.Phase
		}
	}

	It("fails when its container is killed", func(ctx SpecContext) {
		_, err := api.CoreV1().Pods("default").Create(ctx, &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "job"},
			Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "job:1"}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(phase(ctx, "job")).Should(Equal(v1.PodRunning))
		Expect(nodes.Exit("default", "job", "main", 137)).To(Succeed())
		Eventually(phase(ctx, "job")).Should(Equal(v1.PodFailed))
	})
})

package kubelet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
)

const quarter = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: kubeparts.test/busybox:1
    command: [sleep, inf]
    resources: {requests: {cpu: 20m}}
`

// While an agent starts that finds pods running, their class never has less CPU
// than they request.
func TestIntegrationAQOSClassKeepsItsCPUOverARestartOnContainerd(t *testing.T) {
	const pods = 50
	w := onContainerd(t)
	a := w.agent
	a.start()
	for i := range pods {
		name := fmt.Sprintf("pod-%02d", i)
		a.write(name+".yaml", fmt.Sprintf(quarter, name))
	}
	running := func() (n int) {
		for _, pod := range a.pods() {
			if pod.Status.Phase == v1.PodRunning {
				n++
			}
		}
		return n
	}
	a.eventually("all pods run", func() bool { return running() == pods })

	tree, err := host.New(host.Config{})
	require.NoError(t, err)
	root, err := cgroups.ParseRoot(a.cgroupRoot())
	require.NoError(t, err)
	value := func() int64 {
		has, err := tree.Read(root.Child("kubepods", "burstable"))
		assert.NoError(t, err)
		if has.CPUWeight != nil {
			return *has.CPUWeight
		}
		return *has.CPUShares
	}
	was := value()
	a.kill()

	// A new pod makes the next agent compute the class before it has synced the others.
	a.write("new.yaml", fmt.Sprintf(quarter, "new"))
	stop, stopped, samples, least := make(chan struct{}), make(chan struct{}), 0, was
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				samples, least = samples+1, min(least, value())
			}
		}
	}()
	a.start()
	a.eventually("the new pod runs, too", func() bool { return running() == pods+1 })
	close(stop)
	<-stopped
	t.Logf("%d before the restart, at least %d in %d samples while the next agent started, %d in the end", was, least, samples, value())
	assert.GreaterOrEqual(t, least, was)
}

package cri_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// A Secret that a command refers to occurs neither in events and errors nor in the statuses
// of the pod.
func TestSecretsInCommandsAreNotReported(t *testing.T) {
	const secret = `s3cr"t\value`
	for _, op := range []string{"CreateContainer", "StartContainer"} {
		t.Run(op, func(t *testing.T) {
			f := newFake()
			f.has("img:1")
			dir := t.TempDir()
			objects := vault{"db": {ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "prod"}, Data: map[string][]byte{"pw": []byte(secret), "short": []byte("pin")}}}
			engine := func(over internalapi.RuntimeService) (*cri.Runtime, *events) {
				seen := new(events)
				rt, err := cri.New(cri.Config{
					Name: "fake", Runtime: over, Images: f, Record: seen.record,
					Providers: cri.Providers{Objects: objects}, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"},
				})
				require.NoError(t, err)
				return rt, seen
			}
			rt, seen := engine(f)
			pod := podOf(container("web"))
			c := &pod.Spec.Containers[0]
			key := func(name string) *v1.EnvVarSource {
				return &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "db"}, Key: name}}
			}
			c.Env = []v1.EnvVar{{Name: "PASSWORD", ValueFrom: key("pw")}, {Name: "PIN", ValueFrom: key("short")}, {Name: "LITERAL", Value: "no such file"}}
			c.Command, c.Args = []string{"run $(PIN)"}, []string{"--password=$(PASSWORD)"}
			text := fmt.Sprintf("exec: %q: no such file; env %q", fmt.Sprintf("run pin %q", "--password="+secret), "X="+secret)
			f.before = failing(9, op, status.Error(codes.Unknown, text))

			res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.Error(t, err)
			last := res.Actions[len(res.Actions)-1]
			for _, shown := range append(seen.take(), err.Error(), last.Message, last.Err.Error()) {
				assert.NotContains(t, shown, "s3cr")
				assert.NotContains(t, shown, "run pin")
			}
			assert.Equal(t, `exec: "run $(PIN) \"--password=$(PASSWORD)\"": no such file; env "X=$(PASSWORD)"`, last.Message)
			if op == "CreateContainer" {
				return
			}

			// A later sync, and one of a restarted agent, starts the created instance.
			next, seen := engine(f)
			_, err = next.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.Error(t, err)
			assert.NotContains(t, fmt.Sprint(seen.take(), err), "s3cr")

			// The runtime repeats its message in the status.
			w := &twister{fakeCRI: f, containerStatus: func(r *runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse {
				r.Status.State, r.Status.StartedAt = runtimeapi.ContainerState_CONTAINER_EXITED, 0
				r.Status.Reason, r.Status.ExitCode, r.Status.Message = "StartError", 128, text
				return r
			}}
			third, _ := engine(w)
			st, err := third.PodStatus(t.Context(), pod.UID)
			require.NoError(t, err)
			require.NotNil(t, st.Container("web"))
			assert.Equal(t, "the message of the runtime is withheld: the command refers to variables", st.Container("web").Message)
		})
	}
}

//go:build unix

package compare

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/test/internal/criproxy"
)

type object = map[string]any

// run returns a snapshot of a static pod with one container, as it is with these IDs.
func run(uid, sandbox, container, dir string) *snapshot {
	version := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-" + NodeName, UID: "mirror-" + "of-" + v1.Pod{}.UID, Annotations: map[string]string{configHash: uid}}}
	version.UID = "mirror-" + version.UID
	version.Status = v1.PodStatus{Phase: v1.PodRunning, HostIP: "192.0.2.2", PodIP: "10.231.7.9"}
	return &snapshot{
		Paths: map[string]string{dir: "<dir>", dir + "/root": "<root>"},
		Pods:  map[string]*podRecord{"web": {Static: true, History: []v1.Pod{version}, Settled: 1}},
		Calls: []criproxy.Call{
			{Method: "RunPodSandbox", Request: object{"config": object{"metadata": object{"name": "web-" + NodeName, "uid": uid}}}, Response: object{"pod_sandbox_id": sandbox}},
			{Method: "CreateContainer", Request: object{"pod_sandbox_id": sandbox, "config": object{
				"metadata": object{"name": "main"},
				"envs":     []any{object{"key": "A", "value": "1"}, object{"key": "KUBERNETES_PORT"}, object{"key": "B"}, object{"key": "KUBERNETES_HOST"}},
				"mounts":   []any{object{"container_path": "/dev/termination-log", "host_path": dir + "/root/pods/" + uid + "/containers/main/0badcafe"}},
			}}, Response: object{"container_id": container}},
			{Method: "StartContainer", Request: object{"container_id": container}},
			{Method: "StopContainer", Request: object{"container_id": container, "timeout": int64(2)}, Code: "NotFound", Error: "no container " + container},
			{Method: "ListContainers", Request: object{"filter": object{"id": container}}},
		},
	}
}

func TestRunsThatDifferOnlyInIDsAreEqual(t *testing.T) {
	a := newDocument(run("uid-1", "sandbox-1", "container-1", "/tmp/a"))
	b := newDocument(run("uid-2", "sandbox-22", "container-22", "/tmp/bbb"))
	assert.Empty(t, diff(a, b))
	assert.Equal(t, []any{"RunPodSandbox", "CreateContainer main", "StartContainer main", "StopContainer main"}, a["order web"])
	assert.Equal(t, object{"request": object{"container_id": "<container web/main>", "timeout": "2"}, "error": "NotFound: no container <container web/main>"}, a["StopContainer web/main"])
	assert.Equal(t, object{"request": object{"filter": object{"id": "<container>"}}}, a["requests ListContainers"])
	created := canonical(a["CreateContainer web/main"])
	assert.Contains(t, created, "<root>/pods/<uid of web>/containers/main/<message>")
	assert.Regexp(t, `"A".*"B".*KUBERNETES_HOST.*KUBERNETES_PORT`, created)
	assert.Contains(t, canonical(a["status web"]), "<IP of web>")
}

func TestASnapshotThatWasReadIsEqual(t *testing.T) {
	s := run("uid-1", "sandbox-1", "container-1", "/tmp/a")
	data, err := json.Marshal(s)
	require.NoError(t, err)
	var again snapshot
	require.NoError(t, json.Unmarshal(data, &again))
	assert.Empty(t, diff(newDocument(s), newDocument(&again)))
}

func TestText(t *testing.T) {
	n := newNormalizer(&snapshot{})
	for text, want := range map[string]string{
		"at 2026-11-23T15:39:15.291294Z or 2026-11-23T15:39:15+01:00": "at <time> or <time>",
		"..2026_11_23_15_39_15.123456/token":                          "..<time>/token",
		`pulled image in 12ms (1.5s including waiting). Image size`:   "pulled image in <duration>. Image size",
		"dial tcp 10.231.7.9:80":                                      "dial tcp <IP>:80",
		"root/pods/containers/main/0badcafe":                          "root/pods/containers/main/<message>",
		"sha256:0badcafe":                                             "sha256:0badcafe",
		`create container "` + strings.Repeat("0", 64) + `": no`:      `create container "<id>": no`,
		"reclaim: [(res: memory, q: 4269886865408), ]":                "reclaim: [(res: memory, q: <amount>), ]",
	} {
		assert.Equal(t, want, n.string(text))
	}
}

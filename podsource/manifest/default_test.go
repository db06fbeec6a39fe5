package manifest_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// fullYAML has each field that Default sets.
const fullYAML = `apiVersion: v1
kind: Pod
metadata:
  name: full
  namespace: apps
spec:
  hostNetwork: true
  overhead: {cpu: 1500u}
  resources: {limits: {cpu: "4", memory: 1Gi}}
  initContainers:
  - {name: setup, image: "busybox@sha256:0000000000000000000000000000000000000000000000000000000000000000"}
  - {name: side, image: "busybox:latest", restartPolicy: Always, startupProbe: {exec: {command: ["true"]}}}
  containers:
  - name: web
    image: registry.example:5000/web
    ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]
    resources: {limits: {cpu: 100500u, memory: 1Mi}, requests: {memory: 512Ki}}
    livenessProbe: {httpGet: {port: 80}}
    readinessProbe: {grpc: {port: 9000}, periodSeconds: 3}
    lifecycle: {preStop: {httpGet: {port: 80}}, postStart: {sleep: {seconds: 1}}}
    env:
    - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: F, valueFrom: {fileKeyRef: {volumeName: scratch, path: env, key: F}}}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes:
  - name: scratch
  - {name: host, hostPath: {path: /var/log}}
  - {name: secret, secret: {secretName: s}}
  - {name: cm, configMap: {name: c}}
  - {name: down, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - name: all
    projected:
      sources:
      - serviceAccountToken: {path: token}
      - downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}
  - {name: img, image: {reference: "quay.io/a/b:v1"}}
  - {name: scsi, iscsi: {targetPortal: "10.0.0.1", iqn: "iqn.2001-04.com.example:a", lun: 0}}
  - {name: claim, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
`

func TestDefaultFillsInWhatTheAPIServerWould(t *testing.T) {
	pod, err := manifest.Decode([]byte(fullYAML))
	require.NoError(t, err)
	before := pod.DeepCopy()
	got := manifest.Default(pod)
	assert.Equal(t, before, pod, "the argument is left alone")

	var want v1.Pod
	require.NoError(t, yaml.UnmarshalStrict([]byte(`apiVersion: v1
kind: Pod
metadata:
  name: full
  namespace: apps
spec:
  restartPolicy: Always
  dnsPolicy: ClusterFirst
  schedulerName: default-scheduler
  terminationGracePeriodSeconds: 30
  enableServiceLinks: true
  securityContext: {}
  hostNetwork: true
  overhead: {cpu: 2m}
  resources: {limits: {cpu: "4", memory: 1Gi}, requests: {cpu: 101m, memory: 512Ki}}
  initContainers:
  - name: setup
    image: "busybox@sha256:0000000000000000000000000000000000000000000000000000000000000000"
    imagePullPolicy: IfNotPresent
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  - name: side
    image: "busybox:latest"
    imagePullPolicy: Always
    restartPolicy: Always
    startupProbe: {exec: {command: ["true"]}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
  containers:
  - name: web
    image: registry.example:5000/web
    imagePullPolicy: Always
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: File
    ports:
    - {containerPort: 80, hostPort: 80, protocol: TCP}
    - {containerPort: 53, hostPort: 53, protocol: UDP}
    resources: {limits: {cpu: 101m, memory: 1Mi}, requests: {cpu: 101m, memory: 512Ki}}
    livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
    readinessProbe: {grpc: {port: 9000, service: ""}, timeoutSeconds: 1, periodSeconds: 3, successThreshold: 1, failureThreshold: 3}
    lifecycle: {preStop: {httpGet: {port: 80, path: /, scheme: HTTP}}, postStart: {sleep: {seconds: 1}}}
    env:
    - {name: IP, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIP}}}
    - {name: F, valueFrom: {fileKeyRef: {volumeName: scratch, path: env, key: F, optional: false}}}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: host, hostPath: {path: /var/log, type: ""}}
  - {name: secret, secret: {secretName: s, defaultMode: 420}}
  - {name: cm, configMap: {name: c, defaultMode: 420}}
  - {name: down, downwardAPI: {defaultMode: 420, items: [{path: labels, fieldRef: {apiVersion: v1, fieldPath: metadata.labels}}]}}
  - name: all
    projected:
      defaultMode: 420
      sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3600}
      - downwardAPI: {items: [{path: name, fieldRef: {apiVersion: v1, fieldPath: metadata.name}}]}
  - {name: img, image: {reference: "quay.io/a/b:v1", pullPolicy: IfNotPresent}}
  - {name: scsi, iscsi: {targetPortal: "10.0.0.1", iqn: "iqn.2001-04.com.example:a", lun: 0, iscsiInterface: default}}
  - {name: claim, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], volumeMode: Filesystem, resources: {requests: {storage: 1Gi}}}}}}
`), &want))
	assert.Equal(t, asYAML(t, &want), asYAML(t, got))
	assert.Equal(t, asYAML(t, got), asYAML(t, manifest.Default(got)), "idempotent")
}

func TestDefaultKeepsWhatIsSet(t *testing.T) {
	pod, err := manifest.Decode([]byte(`apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  restartPolicy: Never
  dnsPolicy: Default
  schedulerName: mine
  terminationGracePeriodSeconds: 0
  enableServiceLinks: false
  securityContext: {runAsUser: 1}
  serviceAccount: sa
  serviceAccountName: sa
  containers:
  - name: c
    image: a:latest
    imagePullPolicy: Never
    terminationMessagePath: /x
    terminationMessagePolicy: FallbackToLogsOnError
    ports: [{containerPort: 1, hostPort: 2, protocol: SCTP}]
    livenessProbe: {httpGet: {port: 1, path: /x, scheme: HTTPS}, timeoutSeconds: 2, periodSeconds: 2, successThreshold: 2, failureThreshold: 2}
  volumes:
  - {name: v, secret: {secretName: s, defaultMode: 256}}
`))
	require.NoError(t, err)
	assert.Equal(t, asYAML(t, pod), asYAML(t, manifest.Default(pod)))
}

func TestPullPolicyFollowsTheTag(t *testing.T) {
	digest := "@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for image, want := range map[string]v1.PullPolicy{
		"nginx":                        v1.PullAlways,
		"nginx:latest":                 v1.PullAlways,
		"host:5000/nginx":              v1.PullAlways,
		"nginx:latest" + digest:        v1.PullAlways,
		"nginx:1":                      v1.PullIfNotPresent,
		"nginx" + digest:               v1.PullIfNotPresent,
		"nginx:1" + digest:             v1.PullIfNotPresent,
		"":                             v1.PullIfNotPresent,
		"Not An Image":                 v1.PullIfNotPresent,
		"registry.example/a/b:v1.2.3":  v1.PullIfNotPresent,
		"registry.example:443/a/b:v1":  v1.PullIfNotPresent,
		"registry.example:443/a/b/c/d": v1.PullAlways,
	} {
		pod := manifest.Default(&v1.Pod{Spec: v1.PodSpec{
			EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Image: image}}},
		}})
		assert.Equal(t, want, pod.Spec.EphemeralContainers[0].ImagePullPolicy, "%q", image)
	}
}

func asYAML(t *testing.T, pod *v1.Pod) string {
	t.Helper()
	data, err := json.Marshal(pod)
	require.NoError(t, err)
	out, err := yaml.JSONToYAML(data)
	require.NoError(t, err)
	return string(out)
}

package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// Each row puts lines of YAML into a pod that is valid without them: at the
// level of the spec, or of its container if they begin with "c:". Rows without
// errors are valid.
func TestValidate(t *testing.T) { // src-20
	probe := "httpGet: {port: 80}"
	for name, tc := range map[string]struct {
		put  string
		want []string
	}{
		"nothing": {"", nil},

		"grace 0":                {"terminationGracePeriodSeconds: 0", nil},
		"grace < 0":              {"terminationGracePeriodSeconds: -1", []string{"spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0"}},
		"deadline":               {"activeDeadlineSeconds: 1", nil},
		"deadline 0":             {"activeDeadlineSeconds: 0", []string{"spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647"}},
		"restartPolicy":          {"restartPolicy: Sometimes", []string{`spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"`}},
		"dnsPolicy":              {"dnsPolicy: Any", []string{`spec.dnsPolicy: Unsupported value: "Any"`}},
		"dns None":               {"dnsPolicy: None", []string{"spec.dnsConfig: Required value: must provide `dnsConfig`"}},
		"dns None, empty":        {"dnsPolicy: None\n  dnsConfig: {}", []string{"spec.dnsConfig.nameservers: Required value"}},
		"dns None, good":         {"dnsPolicy: None\n  dnsConfig: {nameservers: [10.0.0.1], searches: [a.b., _x.y, .], options: [{name: ndots, value: \"2\"}]}", nil},
		"nameserver":             {"dnsConfig: {nameservers: [host]}", []string{`spec.dnsConfig.nameservers[0]: Invalid value: "host"`}},
		"nameserver with zeros":  {"dnsConfig: {nameservers: [010.0.0.1]}", []string{`spec.dnsConfig.nameservers[0]: Invalid value: "010.0.0.1"`}},
		"host alias with zeros":  {"hostAliases: [{ip: 010.0.0.1, hostnames: [a]}]", []string{`spec.hostAliases[0].ip: Invalid value: "010.0.0.1"`}},
		"nameservers":            {"dnsConfig: {nameservers: [10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4]}", []string{"spec.dnsConfig.nameservers: Too many: 4: must have at most 3 items"}},
		"searches":               {"dnsConfig: {searches: [A_b], options: [{value: x}]}", []string{`spec.dnsConfig.searches[0]: Invalid value: "A_b"`, "spec.dnsConfig.options[0]: Required value"}},
		"host aliases":           {"hostAliases: [{ip: x, hostnames: [a, B]}]", []string{`spec.hostAliases[0].ip: Invalid value: "x"`, `spec.hostAliases[0].hostnames[1]: Invalid value: "B"`}},
		"hostname":               {"hostname: a.b\n  subdomain: C", []string{`spec.hostname: Invalid value: "a.b"`, `spec.subdomain: Invalid value: "C"`}},
		"hostname override":      {"hostnameOverride: x\n  hostNetwork: true", []string{"spec.hostnameOverride: Forbidden"}},
		"names":                  {"nodeName: A\n  serviceAccountName: B\n  priorityClassName: C\n  runtimeClassName: D", []string{`spec.nodeName: Invalid value: "A"`, `spec.serviceAccountName: Invalid value: "B"`, `spec.priorityClassName: Invalid value: "C"`, `spec.runtimeClassName: Invalid value: "D"`}},
		"pull secrets":           {"imagePullSecrets: [{}]", []string{"spec.imagePullSecrets[0].name: Required value"}},
		"node selector":          {"nodeSelector: {\"a b\": c, d: \"e f\"}", []string{`spec.nodeSelector[a b]: Invalid value: "a b"`, `spec.nodeSelector[d]: Invalid value: "e f"`}},
		"tolerations":            {"tolerations: [{operator: Exists}, {key: a, value: b, effect: NoExecute, tolerationSeconds: 3}, {key: a, operator: Gt, value: \"3\"}]", nil},
		"bad tolerations":        {"tolerations: [{}, {key: a, operator: Exists, value: b}, {key: a, effect: Nowhere}, {key: a, tolerationSeconds: 3}, {key: a, operator: In}]", []string{"spec.tolerations[0].operator: Invalid value", `spec.tolerations[1].value: Invalid value: "b"`, `spec.tolerations[2].effect: Unsupported value: "Nowhere"`, "spec.tolerations[3].effect: Invalid value", `spec.tolerations[4].operator: Unsupported value: "In"`}},
		"gates":                  {"readinessGates: [{conditionType: a b}]", []string{`spec.readinessGates[0].conditionType: Invalid value: "a b"`}},
		"os":                     {"os: {name: plan9}\n  preemptionPolicy: x", []string{`spec.os.name: Unsupported value: "plan9"`, `spec.preemptionPolicy: Unsupported value: "x"`}},
		"claims":                 {"resourceClaims: [{name: a, resourceClaimName: x}, {name: a}]", []string{`spec.resourceClaims[1].name: Duplicate value: "a"`, "spec.resourceClaims[1]: Invalid value"}},
		"hostPID and shared":     {"hostPID: true\n  shareProcessNamespace: true", []string{"spec.shareProcessNamespace: Invalid value: true"}},
		"user namespace":         {"hostUsers: false\n  hostPID: true", []string{"spec.hostUsers: Forbidden: when false, `hostPID` may not be true"}},
		"pod security":           {"securityContext: {runAsUser: 1, runAsGroup: 1, fsGroup: 1, supplementalGroups: [1], fsGroupChangePolicy: Always, supplementalGroupsPolicy: Merge, sysctls: [{name: net.core.somaxconn, value: \"1\"}, {name: net/ipv4/ip_forward, value: \"1\"}], seccompProfile: {type: Localhost, localhostProfile: a/b}, appArmorProfile: {type: Localhost, localhostProfile: a}}", nil},
		"sysctls of the host":    {"hostNetwork: true\n  hostIPC: true\n  securityContext: {sysctls: [{name: net.core.somaxconn, value: a}, {name: kernel.shmmax, value: b}, {name: net.*, value: c}, {name: user.x, value: d}]}", []string{`sysctls[0].name: Invalid value: "net.core.somaxconn": may not be specified when 'hostNetwork' is true`, `sysctls[1].name: Invalid value: "kernel.shmmax": may not be specified when 'hostIPC' is true`, `sysctls[2].name: Invalid value: "net.*": must be the name`, `sysctls[2].name: Invalid value: "net.*": may not be`}},
		"bad pod security":       {"securityContext: {runAsUser: -1, runAsGroup: -2, fsGroup: -3, supplementalGroups: [-4], fsGroupChangePolicy: x, supplementalGroupsPolicy: x2, sysctls: [{value: a}, {name: \"a b\", value: c}, {name: a, value: b}, {name: a, value: b}], seccompProfile: {type: x}, appArmorProfile: {type: Localhost}}", []string{"runAsUser: Invalid value: -1", "runAsGroup: Invalid value: -2", "fsGroup: Invalid value: -3", "supplementalGroups[0]: Invalid value: -4", `fsGroupChangePolicy: Unsupported value: "x"`, `supplementalGroupsPolicy: Unsupported value: "x2"`, "sysctls[0].name: Required value", `sysctls[1].name: Invalid value: "a b"`, `sysctls[3].name: Duplicate value: "a"`, `seccompProfile.type: Unsupported value: "x"`, "appArmorProfile.localhostProfile: Required value"}},
		"profiles":               {"securityContext: {seccompProfile: {type: Localhost, localhostProfile: ../x}, appArmorProfile: {type: Unconfined, localhostProfile: x}}", []string{`seccompProfile.localhostProfile: Invalid value: "../x"`, `appArmorProfile.localhostProfile: Invalid value: "x"`}},
		"pod resources":          {"resources: {limits: {cpu: 1}, requests: {cpu: 1}}\n  overhead: {cpu: 10m}", nil},
		"bad pod resources":      {"resources: {limits: {cpu: 1, ephemeral-storage: 1}, requests: {cpu: 2}, claims: [{name: x}]}\n  overhead: {cpu: -1}", []string{"spec.resources.limits[ephemeral-storage]: Unsupported value", `spec.resources.requests[cpu]: Invalid value: "2": must be less than or equal to cpu limit of 1`, "spec.resources.claims: Forbidden", `spec.overhead[cpu]: Invalid value: "-1"`}},
		"ephemeral containers":   {"ephemeralContainers: [{name: d, image: d}]", []string{"spec.ephemeralContainers: Forbidden: cannot be set on create"}},
		"init containers":        {"initContainers: [{name: a, image: i}, {name: b, image: i, restartPolicy: Always, livenessProbe: {" + probe + "}, lifecycle: {postStart: {exec: {command: [a]}}}}]", nil},
		"init name taken":        {"initContainers: [{name: web, image: i}]", []string{`spec.initContainers[0].name: Duplicate value: "web"`}},
		"init with probes":       {"initContainers: [{name: a, image: i, livenessProbe: {" + probe + "}, readinessProbe: {" + probe + "}, startupProbe: {" + probe + "}, lifecycle: {}}]", []string{"spec.initContainers[0].livenessProbe: Forbidden", "spec.initContainers[0].readinessProbe: Forbidden", "spec.initContainers[0].startupProbe: Forbidden", "spec.initContainers[0].lifecycle: Forbidden"}},
		"init restart":           {"initContainers: [{name: a, image: i, restartPolicy: x}, {name: b, image: i, restartPolicy: Always, restartPolicyRules: [{action: Restart, exitCodes: {operator: Is, values: [1]}}]}]", []string{`spec.initContainers[0].restartPolicy: Unsupported value: "x"`, `spec.initContainers[1].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Is"`}},
		"rules of a sidecar":     {"initContainers: [{name: a, image: i}, {name: b, image: i, restartPolicy: Always, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [88]}}]}]", nil},
		"init ports":             {"initContainers: [{name: a, image: i, ports: [{containerPort: 1, hostPort: 80}]}, {name: b, image: i, restartPolicy: Always, ports: [{containerPort: 1, hostPort: 81}]}, {name: c, image: i, restartPolicy: Always, ports: [{containerPort: 1, hostPort: 81}]}]", []string{`spec.initContainers[2].ports[0].hostPort: Duplicate value: "TCP//81"`}},
		"c: rules":               {"c: restartPolicy: Never\n    restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [42]}}]", nil},
		"c: rules, no policy":    {"c: restartPolicyRules: [{action: Jump}, {action: Restart, exitCodes: {operator: Is}}]", []string{"containers[0].restartPolicy: Required value", `restartPolicyRules[0].action: Unsupported value: "Jump"`, "restartPolicyRules[0].exitCodes: Required value", `restartPolicyRules[1].exitCodes.operator: Unsupported value: "Is"`, "restartPolicyRules[1].exitCodes.values: Required value"}},
		"c: image":               {"c: imagePullPolicy: Maybe\n    terminationMessagePolicy: None", []string{`imagePullPolicy: Unsupported value: "Maybe"`, `terminationMessagePolicy: Unsupported value: "None"`}},
		"c: ports":               {"c: ports: [{containerPort: 80, name: http, hostPort: 80}, {containerPort: 80, protocol: UDP, hostPort: 80}, {containerPort: 81, hostIP: 127.0.0.1}]", nil},
		"c: bad ports":           {"c: ports: [{name: A_, containerPort: 0}, {containerPort: 65536, hostPort: -1}, {name: a, containerPort: 1, hostIP: x}, {name: a, containerPort: 1, protocol: ICMP}]", []string{`ports[0].name: Invalid value: "A_"`, "ports[0].containerPort: Required value", "ports[1].containerPort: Invalid value: 65536", "ports[1].hostPort: Invalid value: -1", `ports[2].hostIP: Invalid value: "x"`, `ports[3].name: Duplicate value: "a"`, `ports[3].protocol: Unsupported value: "ICMP"`}},
		"c: host ports":          {"c: ports: [{containerPort: 1, hostPort: 80}, {containerPort: 2, hostPort: 80}]", []string{`ports[1].hostPort: Duplicate value: "TCP//80"`}},
		"c: env":                 {"c: env: [{name: A, value: b}, {name: a.b-c, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['A/b']\"}}}, {name: M, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}, {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}]\n    envFrom: [{prefix: P_, configMapRef: {name: c}}, {secretRef: {name: s}}]", nil},
		"c: bad env":             {"c: env: [{value: b}, {name: \"a=b\"}, {name: A, value: x, valueFrom: {}}, {name: A, valueFrom: {fieldRef: {fieldPath: spec.x}, secretKeyRef: {}}}, {name: A, valueFrom: {resourceFieldRef: {resource: limits.x}}}, {name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1Mi}}}, {name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.name['a']\"}}}]", []string{"env[0].name: Required value", `env[1].name: Invalid value: "a=b"`, "env[2].valueFrom: Invalid value", "env[2].valueFrom: Required value", `env[3].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.x"`, "env[3].valueFrom.secretKeyRef.name: Required value", "env[3].valueFrom.secretKeyRef.key: Required value", "env[3].valueFrom: Forbidden", `env[4].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.x"`, `env[5].valueFrom.resourceFieldRef.divisor: Unsupported value: "1Mi"`, "env[6].valueFrom.fieldRef.fieldPath: Unsupported value"}},
		"c: bad envFrom":         {"c: envFrom: [{}, {prefix: \"=\", configMapRef: {}}, {configMapRef: {name: a}, secretRef: {name: b}}]", []string{"envFrom[0]: Required value", `envFrom[1].prefix: Invalid value: "="`, "envFrom[1].configMapRef.name: Required value", "envFrom[2]: Forbidden"}},
		"c: fileKeyRef":          {"c: env: [{name: A, valueFrom: {fileKeyRef: {volumeName: none, path: /a, key: \"\"}}}]", []string{`fileKeyRef.volumeName: Not found: "none"`, `fileKeyRef.path: Invalid value: "/a"`, "fileKeyRef.key: Required value"}},
		"c: mounts":              {"c: volumeMounts: [{name: none, mountPath: /a}, {name: \"\", mountPath: /a}, {name: none, mountPath: \"\"}, {name: none, mountPath: /b, subPath: ../x}, {name: none, mountPath: /c, subPath: a, subPathExpr: /b, mountPropagation: Bidirectional}, {name: none, mountPath: /d, recursiveReadOnly: Enabled, mountPropagation: x}]", []string{`volumeMounts[0].name: Not found: "none"`, "volumeMounts[1].name: Required value", `volumeMounts[1].mountPath: Invalid value: "/a": must be unique`, "volumeMounts[2].mountPath: Required value", `volumeMounts[3].subPath: Invalid value: "../x"`, "volumeMounts[4].subPathExpr: Invalid value", "volumeMounts[4].mountPropagation: Forbidden", "volumeMounts[5].recursiveReadOnly: Forbidden", `volumeMounts[5].mountPropagation: Unsupported value: "x"`}},
		"c: devices":             {"c: volumeDevices: [{name: none, devicePath: /dev/a}, {name: \"\", devicePath: /dev/a}, {name: none, devicePath: /dev/../a}, {name: none, devicePath: \"\"}]", []string{`volumeDevices[0].name: Not found: "none"`, "volumeDevices[1].name: Required value", `volumeDevices[1].devicePath: Invalid value: "/dev/a": must be unique`, "volumeDevices[2].devicePath: Invalid value", "volumeDevices[3].devicePath: Required value"}},
		"c: resources":           {"c: resources: {limits: {cpu: 1, example.com/gpu: 1, hugepages-2Mi: 2Mi}, requests: {cpu: 500m}}", nil},
		"c: bad resources":       {"c: resources: {limits: {cpu: -1, memory: 1, gpus: 1, \"a b\": 1, example.com/gpu: 1500m}, requests: {memory: 2, example.com/x: 1}, claims: [{name: none}, {name: none}]}", []string{`resources.limits[cpu]: Invalid value: "-1"`, "resources.limits[gpus]: Invalid value", "resources.limits[a b]: Invalid value", `resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer`, `resources.requests[memory]: Invalid value: "2": must be less than or equal to memory limit of 1`, "resources.limits[example.com/x]: Required value", `resources.claims[0].name: Not found: "none"`, "resources.claims[1]: Duplicate value"}},
		"c: requests of devices": {"c: resources: {limits: {example.com/x: 2}, requests: {example.com/x: 1}}", []string{`resources.requests[example.com/x]: Invalid value: "1": must be equal to example.com/x limit of 2`}},
		"c: huge pages alone":    {"c: resources: {limits: {hugepages-2Mi: 2Mi}}", []string{"resources: Forbidden: HugePages require cpu or memory"}},
		"c: resize":              {"c: resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: cpu, restartPolicy: x}, {resourceName: q, restartPolicy: RestartContainer}]", []string{`resizePolicy[1].resourceName: Duplicate value: "cpu"`, `resizePolicy[1].restartPolicy: Unsupported value: "x"`, `resizePolicy[2].resourceName: Unsupported value: "q"`}},
		"c: probes":              {"c: livenessProbe: {" + probe + ", terminationGracePeriodSeconds: 5}\n    readinessProbe: {tcpSocket: {port: http}, successThreshold: 2}\n    startupProbe: {grpc: {port: 90}, failureThreshold: 30}", nil},
		"c: probe handlers":      {"c: livenessProbe: {}\n    readinessProbe: {tcpSocket: {port: 1}, exec: {command: []}}\n    startupProbe: {httpGet: {port: 0, scheme: ftp, httpHeaders: [{name: \"a b\", value: c}]}}", []string{"livenessProbe: Required value: must specify a handler type", "readinessProbe.exec.command: Required value", "readinessProbe: Forbidden: has 2 handler types", "startupProbe.httpGet.port: Invalid value: 0", `startupProbe.httpGet.scheme: Unsupported value: "ftp"`, `startupProbe.httpGet.httpHeaders[0].name: Invalid value: "a b"`}},
		"c: numbers, prober-73":  {"c: livenessProbe: {" + probe + ", successThreshold: 2, terminationGracePeriodSeconds: 0, timeoutSeconds: -1}\n    readinessProbe: {" + probe + ", terminationGracePeriodSeconds: 1, periodSeconds: -1}\n    startupProbe: {" + probe + ", successThreshold: 3, failureThreshold: -1, initialDelaySeconds: -1}", []string{"livenessProbe.successThreshold: Invalid value: 2: must be 1", "livenessProbe.terminationGracePeriodSeconds: Invalid value: 0", "livenessProbe.timeoutSeconds: Invalid value: -1", "readinessProbe.terminationGracePeriodSeconds: Invalid value: 1", "readinessProbe.periodSeconds: Invalid value: -1", "startupProbe.successThreshold: Invalid value: 3", "startupProbe.failureThreshold: Invalid value: -1", "startupProbe.initialDelaySeconds: Invalid value: -1"}},
		"c: hooks":               {"c: lifecycle: {preStop: {sleep: {seconds: 30}}, postStart: {tcpSocket: {port: 1}}}", nil},
		"c: bad hooks":           {"c: lifecycle: {preStop: {sleep: {seconds: 31}}, postStart: {}, stopSignal: SIGUSR1}", []string{"lifecycle.preStop.sleep.seconds: Invalid value: 31: must be non-negative and at most terminationGracePeriodSeconds (30)", "lifecycle.postStart: Required value", "lifecycle.stopSignal: Forbidden"}},
		"c: security":            {"c: securityContext: {privileged: true, allowPrivilegeEscalation: false, runAsUser: -1, procMount: Unmasked, capabilities: {add: [CAP_SYS_ADMIN]}}", []string{"allowPrivilegeEscalation: Invalid value: false: cannot be false when `privileged` is true", "allowPrivilegeEscalation: Invalid value: false: cannot be false when `capabilities.add`", "runAsUser: Invalid value: -1", `procMount: Invalid value: "Unmasked"`}},

		"volumes":         {"volumes: [{name: a}, {name: b, hostPath: {path: /x, type: Directory}}, {name: c, emptyDir: {medium: Memory, sizeLimit: 1Mi}}, {name: d, projected: {sources: [{downwardAPI: {items: [{path: x, resourceFieldRef: {containerName: web, resource: requests.cpu, divisor: 1m}}]}}]}}, {name: e, image: {reference: x}}]", nil},
		"volume names":    {"volumes: [{name: A}, {name: \"\"}, {name: b}, {name: b}]", []string{`spec.volumes[0].name: Invalid value: "A"`, "spec.volumes[1].name: Required value", `spec.volumes[3].name: Duplicate value: "b"`}},
		"two types":       {"volumes: [{name: a, emptyDir: {}, hostPath: {path: /x}}]", []string{"spec.volumes[0]: Forbidden: may not specify more than 1 volume type: hostPath, emptyDir"}},
		"hostPath":        {"volumes: [{name: a, hostPath: {path: \"\"}}, {name: b, hostPath: {path: /a/../b, type: Hole}}]", []string{"spec.volumes[0].hostPath.path: Required value", `spec.volumes[1].hostPath.path: Invalid value: "/a/../b"`, `spec.volumes[1].hostPath.type: Unsupported value: "Hole"`}},
		"emptyDir":        {"volumes: [{name: a, emptyDir: {medium: Tape, sizeLimit: -1}}]", []string{`spec.volumes[0].emptyDir.medium: Unsupported value: "Tape"`, `spec.volumes[0].emptyDir.sizeLimit: Invalid value: "-1"`}},
		"payloads":        {"volumes: [{name: a, secret: {defaultMode: 512, items: [{key: \"\", path: /x}]}}, {name: b, configMap: {items: [{key: k, path: ../x, mode: -1}]}}]", []string{"volumes[0].secret.secretName: Required value", "volumes[0].secret.defaultMode: Invalid value: 512", "volumes[0].secret.items[0].key: Required value", `volumes[0].secret.items[0].path: Invalid value: "/x"`, "volumes[1].configMap.name: Required value", `volumes[1].configMap.items[0].path: Invalid value: "../x"`, "volumes[1].configMap.items[0].mode: Invalid value: -1"}},
		"downward API":    {"volumes: [{name: a, downwardAPI: {items: [{path: a}, {path: b, fieldRef: {fieldPath: status.podIP}}, {path: c, resourceFieldRef: {resource: limits.cpu}}]}}]", []string{"items[0]: Required value", `items[1].fieldRef.fieldPath: Unsupported value: "status.podIP"`, "items[2].resourceFieldRef.containerName: Required value"}},
		"projected":       {"volumes: [{name: a, projected: {sources: [{}, {serviceAccountToken: {path: \"\", expirationSeconds: 1}}, {secret: {}}, {configMap: {}}]}}]", []string{"sources[0]: Forbidden: has 0 projections", "sources[1].serviceAccountToken.path: Required value", "sources[1].serviceAccountToken.expirationSeconds: Invalid value: 1", "sources[2].secret.name: Required value", "sources[3].configMap.name: Required value"}},
		"others":          {"volumes: [{name: a, persistentVolumeClaim: {claimName: \"\"}}, {name: b, csi: {driver: \"\"}}, {name: c, nfs: {server: \"\", path: x}}, {name: d, ephemeral: {}}, {name: e, image: {}}]", []string{"volumes[0].persistentVolumeClaim.claimName: Required value", "volumes[1].csi.driver: Required value", "volumes[2].nfs.server: Required value", `volumes[2].nfs.path: Invalid value: "x"`, "volumes[3].ephemeral.volumeClaimTemplate: Required value", "volumes[4].image.reference: Required value"}},
		"no device":       {"volumes: [{name: a}]\n  initContainers: [{name: i, image: i, volumeDevices: [{name: a, devicePath: /dev/a}]}]", []string{"initContainers[0].volumeDevices[0].name: Invalid value"}},
		"hostNetwork":     {"hostNetwork: true\n  initContainers: [{name: i, image: i, ports: [{containerPort: 1, hostPort: 2}]}]", []string{"initContainers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort`"}},
		"container image": {"initContainers: [{name: a, image: \" x\"}, {name: b}, {image: x}, {name: A, image: x}]", []string{`initContainers[0].image: Invalid value: " x"`, "initContainers[1].image: Required value", "initContainers[2].name: Required value", `initContainers[3].name: Invalid value: "A"`}},
	} {
		t.Run(name, func(t *testing.T) {
			data := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: default}\nspec:\n  containers:\n  - name: web\n    image: nginx\n"
			if put, ok := strings.CutPrefix(tc.put, "c: "); ok {
				data += "    " + put + "\n"
			} else {
				data += "  " + put + "\n"
			}
			pod, err := manifest.Decode([]byte(data))
			require.NoError(t, err)
			errs := manifest.Validate(manifest.Default(pod))
			var all []string
			for _, err := range errs {
				all = append(all, err.Error())
			}
			got := strings.Join(all, "\n")
			for _, want := range tc.want {
				assert.Contains(t, got, want)
			}
			if tc.want == nil {
				assert.Empty(t, got)
			}
		})
	}
}

func TestValidateMetadata(t *testing.T) {
	for name, tc := range map[string]struct{ meta, want string }{
		"name":       {"{name: A, namespace: a}", `metadata.name: Invalid value: "A"`},
		"namespace":  {"{name: a}", "metadata.namespace: Required value"},
		"label key":  {"{name: a, namespace: a, labels: {\"a b\": c}}", `metadata.labels: Invalid value: "a b"`},
		"label":      {"{name: a, namespace: a, labels: {a: \"b c\"}}", `metadata.labels: Invalid value: "b c"`},
		"annotation": {"{name: a, namespace: a, annotations: {\"a b\": c}}", `metadata.annotations: Invalid value: "a b"`},
		"uid":        {"{name: a, namespace: a, uid: a/b}", `metadata.uid: Invalid value: "a/b"`},
	} {
		t.Run(name, func(t *testing.T) {
			pod, err := manifest.Decode([]byte("apiVersion: v1\nkind: Pod\nmetadata: " + tc.meta + "\nspec: {containers: [{name: a, image: a}]}"))
			require.NoError(t, err)
			errs := manifest.Validate(manifest.Default(pod))
			require.Len(t, errs, 1)
			assert.ErrorContains(t, errs[0], tc.want)
		})
	}
}

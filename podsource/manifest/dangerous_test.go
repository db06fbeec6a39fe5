package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

// What could harm a node, or other pods on it, if it were run as it is written: each
// is refused (src-20), and by the name of its field.
func TestDangerousManifestsAreRejected(t *testing.T) {
	const (
		pod   = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
		c     = "  containers:\n  - name: a\n    image: x\n"
		empty = "  volumes: [{name: v, emptyDir: {}}]\n" + c
	)
	for name, tc := range map[string]struct{ manifest, field string }{
		"a host path that climbs":         {pod + "  volumes: [{name: v, hostPath: {path: /a/../../etc}}]\n" + c, "hostPath.path"},
		"a kind of host path":             {pod + "  volumes: [{name: v, hostPath: {path: /a, type: Odd}}]\n" + c, "hostPath.type"},
		"two sources of a volume":         {pod + "  volumes: [{name: v, emptyDir: {}, hostPath: {path: /a}}]\n" + c, "volumes[0]"},
		"a size below zero":               {pod + "  volumes: [{name: v, emptyDir: {sizeLimit: -1Gi}}]\n" + c, "sizeLimit"},
		"an item that climbs":             {pod + "  volumes: [{name: v, downwardAPI: {items: [{path: ../x, fieldRef: {fieldPath: metadata.name}}]}}]\n" + c, "items[0].path"},
		"a mode of a file":                {pod + "  volumes: [{name: v, downwardAPI: {defaultMode: 7777}}]\n" + c, "defaultMode"},
		"an image without a name":         {pod + "  volumes: [{name: v, image: {reference: '', pullPolicy: Always}}]\n" + c, "image"},
		"one mount over another":          {pod + empty + "    volumeMounts: [{name: v, mountPath: /a},{name: v, mountPath: /a}]\n", "mountPath"},
		"a sub-path that climbs":          {pod + empty + "    volumeMounts: [{name: v, mountPath: /a, subPath: ../x}]\n", "subPath"},
		"an absolute sub-path":            {pod + empty + "    volumeMounts: [{name: v, mountPath: /a, subPath: /x}]\n", "subPath"},
		"a volume that is not there":      {pod + c + "    volumeMounts: [{name: v, mountPath: /a}]\n", "volumeMounts[0].name"},
		"mounts that spread to the host":  {pod + empty + "    volumeMounts: [{name: v, mountPath: /a, mountPropagation: Bidirectional}]\n", "mountPropagation"},
		"a directory as a device":         {pod + empty + "    volumeDevices: [{name: v, devicePath: /dev/x}]\n", "volumeDevices"},
		"grace below zero":                {pod + "  terminationGracePeriodSeconds: -5\n" + c, "terminationGracePeriodSeconds"},
		"a deadline of nothing":           {pod + "  activeDeadlineSeconds: 0\n" + c, "activeDeadlineSeconds"},
		"cpu below zero":                  {pod + c + "    resources: {limits: {cpu: -1}}\n", "resources.limits[cpu]"},
		"more asked for than allowed":     {pod + c + "    resources: {limits: {cpu: 1}, requests: {cpu: 2}}\n", "resources.requests"},
		"cpu below zero for the pod":      {pod + "  resources: {limits: {cpu: -1}}\n" + c, "resources.limits[cpu]"},
		"huge pages and no memory":        {pod + c + "    resources: {limits: {hugepages-2Mi: 2Mi}}\n", "resources"},
		"a user below zero":               {pod + "  securityContext: {runAsUser: -1}\n" + c, "runAsUser"},
		"a group below zero":              {pod + "  securityContext: {supplementalGroups: [-1]}\n" + c, "supplementalGroups"},
		"a sysctl that is none":           {pod + "  securityContext: {sysctls: [{name: 'a b', value: x}]}\n" + c, "sysctls[0].name"},
		"a profile that climbs":           {pod + "  securityContext: {seccompProfile: {type: Localhost, localhostProfile: ../../x}}\n" + c, "localhostProfile"},
		"a way to mount /proc":            {pod + c + "    securityContext: {procMount: Odd}\n", "procMount"},
		"privileged, and not":             {pod + c + "    securityContext: {privileged: true, allowPrivilegeEscalation: false}\n", "securityContext"},
		"two process namespaces":          {pod + "  hostPID: true\n  shareProcessNamespace: true\n" + c, "shareProcessNamespace"},
		"users of its own, the host's ID": {pod + "  hostUsers: false\n  hostPID: true\n" + c, "host"},
		"a port beyond all":               {pod + c + "    ports: [{containerPort: 70000}]\n", "containerPort"},
		"one port of the host twice":      {pod + c + "    ports: [{containerPort: 80, hostPort: 80},{containerPort: 81, hostPort: 80}]\n", "hostPort"},
		"a variable with an equals sign":  {pod + c + "    env: [{name: 'a=b', value: x}]\n", "env[0].name"},
		"a probe ten times a second":      {pod + c + "    livenessProbe: {periodSeconds: -1, exec: {command: [a]}}\n", "periodSeconds"},
		"a probe of nothing":              {pod + c + "    livenessProbe: {periodSeconds: 1}\n", "livenessProbe"},
		"a hook that sleeps backwards":    {pod + c + "    lifecycle: {preStop: {sleep: {seconds: -1}}}\n", "sleep"},
		"two hooks in one":                {pod + c + "    lifecycle: {preStop: {exec: {command: [a]}, sleep: {seconds: 1}}}\n", "preStop"},
		"hosts that are none":             {pod + "  hostAliases: [{ip: nope, hostnames: [a]}]\n" + c, "hostAliases[0].ip"},
		"more servers than resolv.conf":   {pod + "  dnsConfig: {nameservers: ['1.1.1.1','1.1.1.2','1.1.1.3','1.1.1.4']}\n" + c, "nameservers"},
		"a host name with a blank":        {pod + "  hostname: 'A B'\n" + c, "hostname"},
		"two containers of one name":      {pod + c + "  - name: a\n    image: x\n", "containers[1].name"},
		"no container":                    {pod + "  containers: []\n", "containers"},
		"an image of blanks":              {pod + "  containers: [{name: a, image: ' '}]\n", "image"},
		"a policy that is none":           {pod + "  restartPolicy: Sometimes\n" + c, "restartPolicy"},
		"a UID that climbs":               {"apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: ../../x}\nspec:\n" + c, "metadata.uid"},
		"a namespace that climbs":         {"apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: ../x}\nspec:\n" + c, "metadata.namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Static([]byte(tc.manifest), "n", "test", manifest.StaticOptions{})
			assert.ErrorContains(t, err, tc.field)
		})
	}
}

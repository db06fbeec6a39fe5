package apiserver_test

import (
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func testEscalation(w *world, _ *hooks) {
	const (
		group    = "/apis/rbac.authorization.k8s.io/v1/"
		roles    = group + "namespaces/escalation/roles"
		bindings = group + "namespaces/escalation/rolebindings"
		secrets  = "rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]"
		maps     = "rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]"
		denied   = ` is forbidden: user "joe" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:` + "\n" +
			`{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`
	)
	bind := func(kind, name string) string {
		return "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: " + kind + ", name: " + name + "}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: joe}]"
	}
	may := func(verb, resource, name string) {
		w.Helper()
		w.eventually(func() bool {
			o := w.expect(201, "", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "spec: {user: joe, resourceAttributes: "+
				"{namespace: escalation, group: rbac.authorization.k8s.io, verb: "+verb+", resource: "+resource+", name: "+name+"}}")
			allowed, _, _ := unstructured.NestedBool(o, "status", "allowed")
			return allowed
		})
	}
	w.expect(201, "", "POST", roles, "metadata: {name: secrets}\n"+secrets)
	w.expect(201, "", "POST", roles, "metadata: {name: editor}\nrules:\n- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [create, patch]}\n"+
		"- {apiGroups: [''], resources: [configmaps], verbs: [get]}")
	w.expect(201, "", "POST", bindings, "metadata: {name: editor}\n"+bind("Role", "editor"))
	joe := *w
	joe.user = "joe"
	may("create", "roles", "''")

	joe.expect(403, `roles.rbac.authorization.k8s.io "a"`+denied, "POST", roles, "metadata: {name: a}\n"+secrets)
	joe.expect(201, "", "POST", roles, "metadata: {name: maps}\n"+maps)
	joe.expect(403, `roles.rbac.authorization.k8s.io "maps"`+denied, "PATCH", roles+"/maps", secrets)
	joe.expect(200, "", "PATCH", roles+"/maps", "metadata: {labels: {a: b}}")
	joe.expect(200, "", "PATCH", roles+"/secrets", "metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b}]}")

	joe.expect(403, `rolebindings.rbac.authorization.k8s.io "a"`+denied, "POST", bindings, "metadata: {name: a}\n"+bind("Role", "secrets"))
	joe.expect(404, `rolebindings.rbac.authorization.k8s.io "absent" not found`, "POST", bindings, "metadata: {name: a}\n"+bind("Role", "absent"))
	code, o, _ := joe.send("POST", bindings, "metadata: {name: a}\n"+bind("ClusterRole", "cluster-admin"))
	assert.Equal(w, 403, code)
	assert.Contains(w, o["message"], `{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`)
	joe.expect(201, "", "POST", bindings, "metadata: {name: maps}\n"+bind("Role", "maps"))

	// The verbs bind and escalate permit it.
	w.expect(201, "", "POST", roles, "metadata: {name: grant}\nrules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [bind, escalate], resourceNames: [secrets, maps]}]")
	w.expect(201, "", "POST", bindings, "metadata: {name: grant}\n"+bind("Role", "grant"))
	may("bind", "roles", "secrets")
	joe.expect(201, "", "POST", bindings, "metadata: {name: b}\n"+bind("Role", "secrets"))
	joe.expect(200, "", "PATCH", roles+"/maps", "rules: [{apiGroups: [''], resources: [nodes], verbs: [list]}]")

	// Aggregation can grant everything.
	w.expect(201, "", "POST", group+"clusterroles", "metadata: {name: escalation}\nrules: [{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles, clusterrolebindings], verbs: [create]}]")
	w.expect(201, "", "POST", group+"clusterrolebindings", "metadata: {name: escalation}\n"+bind("ClusterRole", "escalation"))
	w.Cleanup(func() {
		w.expectDeleted(group + "clusterroles/escalation")
		w.expectDeleted(group + "clusterrolebindings/escalation")
	})
	may("create", "clusterroles", "''")
	joe.expect(403, `clusterroles.rbac.authorization.k8s.io "a" is forbidden: must have cluster-admin privileges to use the aggregationRule`,
		"POST", group+"clusterroles", "metadata: {name: a}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}")
	code, _, _ = joe.send("POST", group+"clusterrolebindings", "metadata: {name: a}\n"+bind("ClusterRole", "cluster-admin"))
	assert.Equal(w, 403, code)
}

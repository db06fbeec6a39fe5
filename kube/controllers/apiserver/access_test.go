package apiserver_test

import (
	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/namespaces/access/"

func testAccess(w *world, _ *hooks) {
	const maps = "/api/v1/namespaces/access/configmaps"
	jane := *w
	jane.user = "jane"
	forbidden := `configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "access"`
	jane.expect(403, forbidden, "GET", maps, "")
	review := func(verb string) map[string]any {
		o := w.expect(201, "", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
			"spec: {user: jane, resourceAttributes: {namespace: access, verb: "+verb+", resource: configmaps}}")
		status, _, _ := unstructured.NestedMap(o, "status")
		return status
	}
	assert.Equal(w, map[string]any{"allowed": false}, review("list"))
	w.expect(201, "", "POST", rbacPath+"roles", "metadata: {name: reader}\nrules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get, list]}]")
	w.expect(201, "", "POST", rbacPath+"rolebindings", "metadata: {name: reader}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]")
	w.eventually(func() bool { return review("list")["allowed"] == true })
	assert.Equal(w, map[string]any{
		"allowed": true, "reason": `RBAC: allowed by RoleBinding "reader/access" of Role "reader" to User "jane"`,
	}, review("list"))
	jane.expect(200, "", "GET", maps, "")
	jane.expect(403, `configmaps is forbidden: User "jane" cannot create resource "configmaps" in API group "" in the namespace "access"`,
		"POST", maps, "metadata: {name: a}")
	jane.expect(403, `secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" at the cluster scope`, "GET", "/api/v1/secrets", "")
	o := jane.expect(201, "", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		"spec: {resourceAttributes: {namespace: access, verb: get, resource: configmaps}}")
	allowed, _, _ := unstructured.NestedBool(o, "status", "allowed")
	assert.True(w, allowed)
	o = jane.expect(201, "", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}")
	info, _, _ := unstructured.NestedMap(o, "status", "userInfo")
	assert.Equal(w, map[string]any{"username": "jane", "groups": []any{"system:authenticated"}}, info)
	w.expect(404, `serviceaccounts "absent" not found`, "POST", "/api/v1/namespaces/access/serviceaccounts/absent/token", "spec: {}")
}

func testTokens(w *world, _ *hooks) {
	const accounts = "/api/v1/namespaces/tokens/serviceaccounts"
	account := w.expect(201, "", "POST", accounts, "metadata: {name: robot}")
	uid, _, _ := unstructured.NestedString(account, "metadata", "uid")
	req := w.expect(201, "", "POST", accounts+"/robot/token", "apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\nspec: {expirationSeconds: 700}")
	token, _, _ := unstructured.NestedString(req, "status", "token")
	review := func(token string) map[string]any {
		o := w.expect(201, "", "POST", "/apis/authentication.k8s.io/v1/tokenreviews", "spec: {token: "+token+"}")
		status, _, _ := unstructured.NestedMap(o, "status")
		return status
	}
	status := review(token)
	assert.Equal(w, true, status["authenticated"])
	user, _, _ := unstructured.NestedMap(status, "user")
	delete(user, "extra")
	assert.Equal(w, map[string]any{
		"username": "system:serviceaccount:tokens:robot", "uid": uid,
		"groups": []any{"system:serviceaccounts", "system:serviceaccounts:tokens", "system:authenticated"},
	}, user)
	assert.Nil(w, review("wrong")["authenticated"])
	robot := *w
	robot.token = token
	robot.expect(403, `secrets is forbidden: User "system:serviceaccount:tokens:robot" cannot list resource "secrets" in API group "" in the namespace "tokens"`,
		"GET", "/api/v1/namespaces/tokens/secrets", "")
	robot.token = "wrong"
	robot.expect(401, "Unauthorized", "GET", "/api/v1/namespaces/tokens/secrets", "")
	w.expect(422, `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes`,
		"POST", accounts+"/robot/token", "apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\nspec: {expirationSeconds: 5}")
}

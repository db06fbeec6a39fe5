package auth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/kubeparts/kubeparts/kube/auth"
)

func ExampleChain() {
	authenticator := auth.Chain{auth.Certificates{}, auth.Anonymous{}}
	r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
	user, err := authenticator.Authenticate(r)
	fmt.Println(user.Name, err)

	r.Header.Set("Authorization", "Bearer stolen") // which Tokens would reject
	user, err = authenticator.Authenticate(r)
	fmt.Println(user.Name, err)
	// Output:
	// system:anonymous <nil>
	// system:anonymous <nil>
}

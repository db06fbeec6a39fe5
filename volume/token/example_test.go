package token_test

import (
	"context"
	"fmt"
	"log"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/volume/token"
)

func Example() {
	get := func(_ context.Context, _, _ string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
		fmt.Println("requested from the API server")
		r.Status.Token = "ey…"
		r.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
		return r, nil
	}
	tokens, err := token.New(token.Config{Get: get})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		t, err := tokens.Token(context.Background(), "default", "builder", new(authenticationv1.TokenRequest))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(t.Value)
	}
	// Output:
	// requested from the API server
	// ey…
	// ey…
}

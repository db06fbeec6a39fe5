// Package auth authenticates and authorizes requests to a node's server: by client
// certificates, and by token and access reviews of the API server.
//
// # Behavior
//
// The user of a request: an [Authenticator] authenticates by a certificate ([Certificates])
// or a token ([Tokens]), and a [Chain] combines several. Whether an operation is allowed:
// [Access] reviews it with the API server, and caches the decision. The attributes of a
// path of the kubelet's API are determined by kube/server.
//
// # Usage
//
//	// The client has a rate limit of its own.
//	tokens, err := auth.NewTokens(auth.TokensConfig{Reviews: client.AuthenticationV1().TokenReviews()})
//	access, err := auth.NewAccess(auth.AccessConfig{Reviews: client.AuthorizationV1().SubjectAccessReviews()})
//	authenticator := auth.Chain{auth.Certificates{Roots: roots}, tokens}
//	…
//	user, err := authenticator.Authenticate(r)      // err: 401
//	d, err := access.Authorize(r.Context(), user, auth.Attributes{
//		Verb: "get", Version: "v1", Resource: "nodes", Subresource: "metrics", Name: "n1",
//	})
//	if err != nil { … }                             // 500
//	if !d.Allowed { … }                             // 403
//
// # Concurrency
//
// Everything is safe for concurrent use. There are no goroutines and no Run. Concurrent
// requests with the same token, or for the same decision, share a review.
//
// # Guarantees and limits
//
//   - A valid token is reviewed every 2 min, an invalid one every 10 s, an allowed
//     operation every 5 min and a denied one every 30 s. Changes in the API server take
//     effect after these times.
//   - Errors are not cached and never allow access: without API server, no request with a
//     token is authenticated, unless it is cached.
//   - A call of the API server may take 10 s. At most 64 reviews are pending, 16 of them
//     for one remote host (tokens) or user (access), and 1024 requests wait for them, 256
//     of one host or user; beyond that the error is [ErrTooManyReviews], immediately.
//     Cached results are returned without waiting.
//   - The caches are bounded, with one for good and one for bad results: invalid tokens
//     cannot evict valid ones. Tokens are not stored, and do not occur in errors.
//
// # Differences from the kubelet
//
//   - Invalid tokens are cached too, for a short time, so that repeated requests do not
//     reach the API server.
//   - The kubelet bounds neither pending reviews nor the duration of a call that hangs.
//
// # Testing
//
// Tests use in-memory API servers, in virtual time.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package auth

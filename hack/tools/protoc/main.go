// protoc compiles protobuf files for go-to-protobuf, which calls it as it would call the protocol compiler of C++: with
// search paths, one output folder and one file. The generator of Go code is the plugin protoc-gen-gogo on PATH. It is a
// Go program so that generated code depends on nothing but Go modules.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugin is the program that turns descriptors into Go code.
const plugin = "protoc-gen-gogo"

type folders []string

// String implements flag.Value.
func (f *folders) String() string { return strings.Join(*f, ",") }

// Set implements flag.Value.
func (f *folders) Set(value string) error {
	*f = append(*f, value)
	return nil
}

func main() {
	var search folders
	flag.Var(&search, "I", "folder in which imported files are looked for; may be repeated")
	output := flag.String("gogo_out", "", "folder below which Go code is written")
	flag.Parse()
	if err := run(context.Background(), search, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protoc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, search []string, output string, files []string) error {
	if output == "" || len(files) != 1 {
		return errors.New("call it with --gogo_out=<folder> and one file")
	}
	name, err := importName(search, files[0])
	if err != nil {
		return err
	}
	request, err := compile(ctx, search, name)
	if err != nil {
		return err
	}
	response, err := generate(request)
	if err != nil {
		return err
	}
	for _, file := range response.File {
		if err := os.WriteFile(filepath.Join(output, file.GetName()), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// importName is how other files import a file: its path below a search path. The longest of these is meant.
func importName(search []string, file string) (string, error) {
	best := ""
	for _, folder := range search {
		relative, err := filepath.Rel(folder, file)
		if err != nil || strings.HasPrefix(relative, "..") {
			continue
		}
		if best == "" || len(relative) < len(best) {
			best = relative
		}
	}
	if best == "" {
		return "", fmt.Errorf("%s lies below none of %s", file, strings.Join(search, ", "))
	}
	return filepath.ToSlash(best), nil
}

// compile parses a file with what it imports, and describes them: imported files first.
func compile(ctx context.Context, search []string, name string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: search}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(ctx, name)
	if err != nil {
		return nil, err
	}
	return &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{name},
		ProtoFile:      describe(compiled[0], map[string]bool{}),
	}, nil
}

func describe(file protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return nil
	}
	seen[file.Path()] = true
	var described []*descriptorpb.FileDescriptorProto
	for i := range file.Imports().Len() {
		described = append(described, describe(file.Imports().Get(i).FileDescriptor, seen)...)
	}
	return append(described, protoutil.ProtoFromFileDescriptor(file))
}

func generate(request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	input, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		return nil, err
	}
	command := exec.Command(plugin)
	command.Stdin, command.Stderr = bytes.NewReader(input), os.Stderr
	answer, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", plugin, err)
	}
	if response.GetError() != "" {
		return nil, fmt.Errorf("%s: %s", plugin, response.GetError())
	}
	return &response, nil
}

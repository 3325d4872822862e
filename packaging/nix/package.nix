# becalm for Nix: nix-build -E 'with import <nixpkgs> {}; callPackage packaging/nix/package.nix {}', in the root of the sources.
{ lib, rustPlatform, installShellFiles }:

let
  root = ../..;
  workspace = (lib.importTOML (root + "/Cargo.toml")).workspace.package;
in
rustPlatform.buildRustPackage {
  pname = "becalm";
  version = workspace.version;
  src = lib.cleanSource root;
  cargoLock.lockFile = root + "/Cargo.lock";
  cargoBuildFlags = [ "--package" "becalm" ];
  # They measure the machine, and want root.
  doCheck = false;
  nativeBuildInputs = [ installShellFiles ];
  postInstall = ''
    $out/bin/becalm man $out/share/man/man1
    installShellCompletion --cmd becalm \
      --bash <($out/bin/becalm completions bash) \
      --fish <($out/bin/becalm completions fish) \
      --zsh <($out/bin/becalm completions zsh)
  '';
  meta = {
    description = workspace.description;
    license = with lib.licenses; [ asl20 mit ];
    platforms = [ "x86_64-linux" "aarch64-linux" ];
    mainProgram = "becalm";
  };
}

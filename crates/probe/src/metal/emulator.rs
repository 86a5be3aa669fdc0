//! Whether the machine is emulated (QEMU's TCG): times there say nothing about a TLB.

/// Who emulates this machine, if that can be told. What takes long there says nothing about a TLB.
pub(crate) fn emulator() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        // QEMU's leaf of hypervisors, where it translates code (with KVM it says KVMKVMKVM): target/i386/cpu.c.
        // Asked for by hand: `raw-cpuid` looks there only if the hypervisor bit is set, which QEMU can leave out.
        let leaf = std::arch::x86_64::__cpuid(0x4000_0000);
        let name: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|word| word.to_le_bytes()).collect();
        (name == b"TCGTCGTCGTCG").then(|| "QEMU translates its instructions (CPUID 0x40000000 says TCG)".into())
    }
    #[cfg(target_arch = "aarch64")]
    {
        // qemu-user hands the file of the machine below through; on Arm it names an implementer, never a vendor.
        let cpu = lookaside_host::CpuInfo::here();
        let text = cpu.text();
        (text.contains("vendor_id") && !text.contains("CPU implementer"))
            .then(|| "the kernel's cpuinfo is that of another architecture".into())
    }
}
